from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End, Forward, InnerForward, LossCall
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

MIN_ROWS = 32
"""Labels that are looked at before something is said of all of them. A guess."""

MOST_ROWS = 4096
"""Rows of a loss call up to which their labels are looked at one by one."""

IGNORED = -100
"""The label that torch's cross-entropy leaves out, unless told otherwise."""


class WrongLabels(Check):
    """The labels that reach the loss are not the classes of the rows.

    ## Why is this a bug?
    A loss takes any whole numbers. Rows whose label is ignored count for nothing, a single class for all rows teaches a
    constant, classes fitted as numbers give no probabilities, and labels of a masked language model that name the mask,
    or every word, teach it to copy.

    ## What to do
    Look at the column that becomes the labels, and at the loss function's options.

    ## When it is right
    Labels of tokens, of which those of padding and of words that are not masked are -100, are not reported; nor are
    floating point targets of a regression.

    ## References
    - https://github.com/huggingface/transformers/issues/45611
    """

    id = "inputs::wrong-labels"
    needs = "labels of classes"
    formerly = ("inputs::labels",)
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)
        self.classes: set[int] = set()
        """Labels of rows, until two differ."""
        self.rows = 0
        """With these."""
        self.targets: set[float] = set()
        """Of a regression, until three differ."""
        self.regressed = 0

    def on_forward(self, event: Forward) -> None:
        self._masked_words(event)
        if event.gradients and self.monitor.is_sampled():
            self._regression(event)

    def on_inner_forward(self, event: InnerForward) -> None:
        self._masked_words(event)

    def _masked_words(self, event: Forward) -> None:
        """A masked language model is trained to say the words behind the masks, and only those."""
        ids, labels, mask = self.tokens.ids, event.tensors.get("labels"), self.tokens.special("mask_token_id")
        if ids is None or labels is None or labels.shape != ids.shape or mask is None or not (ids == mask).any():
            return
        self.looked = True
        counted = labels != IGNORED
        hidden = counted & (ids == mask)
        observed = None
        if hidden.any() and bool((labels[hidden] == mask).all()):
            observed = "the labels at the masked places are the mask itself"
        elif int(counted.sum()) > 0.5 * labels.numel() and bool((labels == ids)[counted & (ids != mask)].all()):
            observed = f"{int(counted.sum())} of {labels.numel()} tokens are labelled; most of them are not masked"
        if observed is not None:
            self.found(
                expected="the word behind each mask, and -100 elsewhere",
                observed=observed,
                where=event.where,
                update=self.monitor.update,
                hint="Copy the ids before they are masked, and set the labels of all other places to -100.",
            )

    def _regression(self, event: Forward) -> None:
        """Classes 0 and 1 that a model with one output is fitted to as numbers."""
        labels = event.tensors.get("labels")
        outputs = getattr(getattr(event.model, "config", None), "num_labels", None)
        if labels is None or labels.is_floating_point() or outputs != 1:
            return
        self.looked = True
        if len(self.targets) <= 2:
            self.targets.update(float(value) for value in labels.flatten().tolist())
        self.regressed += labels.numel()
        if self.regressed >= MIN_ROWS and self.targets == {0.0, 1.0}:
            self._not_classes("num_labels=1 makes a regression of them: all targets are 0 or 1", event)

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or event.target.dim() != 1 or event.target.is_floating_point():
            return
        self.looked = True
        ignored = event.options.get("ignore_index", IGNORED)
        is_class = event.input.dim() == 2 and 0 <= ignored < event.input.shape[1]
        if self.monitor.is_sampled() and is_class and (event.target == ignored).any():
            self._not_classes(f"ignore_index={ignored} leaves the rows of class {ignored} out", event)
        if event.batch is not None and event.input.dim() == 2 and event.input.shape[0] <= MOST_ROWS:
            self._rows(event, event.batch.indices, ignored)

    def _rows(self, event: LossCall, drawn: object, ignored: int) -> None:
        left_out = int((event.target == ignored).sum()) if ignored < 0 else 0
        if left_out and isinstance(drawn, (list, tuple)) and len(drawn) == len(event.target):
            self._not_classes(
                f"{left_out} of {len(drawn)} rows of a batch have the label {ignored} and count for nothing", event
            )
        if len(self.classes) < 2:
            self.classes.update(event.target.tolist())
            self.rows += len(event.target)

    def _not_classes(self, observed: str, event: LossCall | Forward) -> None:
        self.found(
            expected="whole numbers from 0 on, one class each, all of them counted",
            observed=observed,
            where=event.where,
            update=self.monitor.update,
        )

    def on_end(self, event: End) -> None:
        if self.rows >= MIN_ROWS and len(self.classes) == 1:
            self.found(
                expected="rows of more than one class",
                observed=f"all {self.rows} rows that were trained on have the label {next(iter(self.classes))}",
                where=self.tokens.separated_at,
                update=1,
                hint="Look at the column that becomes the labels, and at the order of the rows.",
            )
