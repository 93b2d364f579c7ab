from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End
from harness.watch.facts.chat_templates import ChatTemplates
from harness.watch.facts.labels_given import LabelsGiven
from harness.watch.monitor import Monitor

MIN_ROWS = 16
"""Rows none of which has the token. By reasoning: fewer may be the inside of one long text."""


class StartMissing(Check):
    """The tokenizer begins a text with a begin-of-text token, and no row of the training has it.

    ## Why is this a bug?
    A model that was pretrained with a begin-of-text token (BOS) at the beginning of each text attends to it from
    everywhere. Rows that are put together from parts, tokenized with `add_special_tokens=False`, or written by a
    template without it, lack it; whatever serves the model later adds it again.

    ## What to do
    Put `tokenizer.bos_token_id` in front of each row that begins a text, or let the tokenizer or the chat template
    write it.

    ## When it is right
    A model that is trained from scratch, or that knows no such token. If any of the rows has one, nothing is reported.

    ## References
    - https://huggingface.co/docs/transformers/chat_templating
    """

    severity = "warning"
    status = "new"
    needs = "language model whose tokenizer begins texts with a token"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = monitor.fact(LabelsGiven)
        self.template = monitor.fact(ChatTemplates)
        self.rows = 0
        self.begun = False
        self.where: str | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        start = getattr(self.template.tokenizer, "bos_token_id", None)
        if start is None or self.begun:
            return
        for each in self.given.labelled:
            if not each.decoder:
                self.rows += len(each.tokens)
                self.begun = self.begun or bool((each.tokens == start).any())
                self.where = self.where or each.forward.where

    def on_end(self, event: End) -> None:
        tokenizer = self.template.asked
        if tokenizer is None or not (self.begun or self.rows >= MIN_ROWS):
            return
        written = tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id]
        self.looked = written
        if written and not self.begun:
            self.found(
                expected=f"rows that begin with {tokenizer.bos_token!r}, as the tokenizer begins a text",
                observed=f"none of the {self.rows} rows that were looked at has it",
                where=self.where,
            )
