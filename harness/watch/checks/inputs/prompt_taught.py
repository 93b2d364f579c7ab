from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End, TrainerMade
from harness.watch.facts.labels_given import LabelsGiven
from harness.watch.monitor import Monitor

ASKED = ("completion_only_loss", "assistant_only_loss")
"""Settings of TRL by which the prompt is to be left out of the loss."""

MIN_ROWS = 16
"""Rows that must have been seen for a share of them to mean something. By reasoning: one of fewer is no rule."""

MIN_SHARE = 0.05
"""Smallest share of rows that are taught whole, or with their prompt left out, that is no exception. Neither half nor
double of it changes a verdict of the corpus."""

MIN_PROMPT = 2
"""Tokens without a label at a row's beginning, from which on they are a prompt and not what begins a text."""


class PromptTaught(Check):
    """The prompt is taught in some rows, or in all although it was to be left out of the loss.

    ## Why is this a bug?
    If the mask of the prompt looks for a marker, rows in which the marker is tokenized differently are taught whole: in
    these rows, the model learns to ask as well as to answer. `completion_only_loss=True` and `assistant_only_loss=True`
    ask TRL for a loss on the answer alone; a collator of your own, or a data set that is already tokenized, knows
    nothing of them.

    ## What to do
    Run `harness tokens` to see which tokens carry a loss, and look at a row that is taught whole. Search the marker's
    token ids as they are in the text, or mask by the length of the tokenized prompt.

    ## When it is right
    A mixture of texts without a prompt and conversations.

    ## References
    - https://huggingface.co/docs/trl/sft_trainer#train-on-completion-only
    """

    severity = "warning"
    status = "new"
    needs = "language model whose prompts are left out of the loss"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = monitor.fact(LabelsGiven)
        self._asked: str | None = None
        self.rows = self.whole = self.prompts = 0
        self.mixed = 0
        """Rows that are taught whole in batches in which the prompt of others is left out."""
        self.where: str | None = None

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._asked = next((name for name in ASKED if getattr(event.trainer.args, name, None) is True), None)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for each in self.given.labelled:
            if each.decoder:
                continue
            untaught = each.real & ~each.counted
            first_taught = (each.counted.long().cumsum(1) == 0) & untaught
            prompts = first_taught.sum(1) > MIN_PROMPT  # the first token is the target of no place
            taught = each.counted.any(1)
            whole, prompts = taught & (untaught.sum(1) <= 1), taught & prompts
            self.rows += int(taught.sum())
            self.whole += int(whole.sum())
            self.prompts += int(prompts.sum())
            if bool(whole.any()) and bool(prompts.any()):  # another phase of a script may have another loss
                self.mixed += int(whole.sum())
            self.where = self.where or each.forward.where

    def on_end(self, event: End) -> None:
        self.looked = self.rows >= MIN_ROWS and (self.prompts > 0 or self._asked is not None)
        in_vain = self._asked is not None and not self.prompts and self.whole >= MIN_SHARE * self.rows
        if self.looked and (in_vain or self.mixed >= MIN_SHARE * self.rows):
            asked = f", as {self._asked}=True asks" if self._asked else ", as in the other rows"
            self.found(
                expected=f"-100 as the label of the prompt{asked}",
                observed=f"in {self.mixed or self.whole} of {self.rows} rows the prompt carries a loss too",
                where=self.where,
            )
