from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End
from harness.watch.facts.labels_given import LabelsGiven
from harness.watch.monitor import Monitor

MIN_ROWS = 16
"""Rows that must have been seen for a share of them to mean something. By reasoning: one of fewer is no rule."""

MAX_SHARE = 0.05
"""Largest share of rows without any label that may be a few long ones. Neither half nor double of it changes a verdict
of the corpus."""


class NothingTaught(Check):
    """Rows of a language model have no label: they teach it nothing.

    ## Why is this a bug?
    A row whose labels are all -100 has no loss. That happens when truncation cuts off the answer, when a template has
    no `{% generation %}` block for `assistant_only_loss` to find, or when the marker that the mask looks for is
    tokenized differently. The run looks fine, and trains on the other rows, or on none: a loss of 0 or NaN is the only
    sign.

    ## What to do
    Print a row's labels, or run `harness tokens`. Raise `max_length`, or truncate the prompt and not the answer; filter
    rows without labels; give the template generation markers.

    ## When it is right
    A few rows without an answer are nothing to worry about: only a whole batch without a label, or more than one row in
    twenty, is reported.

    ## References
    - https://github.com/huggingface/trl/issues/3927
    """

    status = "new"
    needs = "language model that is given labels"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = monitor.fact(LabelsGiven)
        self.rows = self.without = self.batches = self.empty = self.cut = 0
        self.where: str | None = None
        self.update: int | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for each in self.given.labelled:
            self.looked = True
            without = ~each.counted.any(1)
            self.rows += len(without)
            self.batches += 1
            self.without += int(without.sum())
            self.empty += bool(without.all())
            self.cut += int((without & each.real.all(1)).sum())
            if without.any() and self.where is None:
                self.where, self.update = each.forward.where, self.monitor.update

    def on_end(self, event: End) -> None:
        often = self.rows >= MIN_ROWS and self.without > MAX_SHARE * self.rows
        if self.empty or often:
            long = f"; {self.cut} of them fill the whole width: cut off?" if self.cut else ""
            self.found(
                expected="labels other than -100 in every row",
                observed=f"{self.without} of {self.rows} rows that were looked at have none, "
                f"{self.empty} of {self.batches} batches none at all{long}",
                where=self.where,
                update=self.update,
            )
