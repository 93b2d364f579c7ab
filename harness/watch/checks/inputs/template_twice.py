from __future__ import annotations

from itertools import pairwise

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End
from harness.watch.facts.chat_templates import ChatTemplates
from harness.watch.facts.labels_given import LabelsGiven
from harness.watch.monitor import Monitor

MIN_ROWS = 8
"""Rows that must have it. By reasoning: one or two may quote a template."""

MIN_SHARE = 0.5
"""Share of the rows that must have it. What is applied twice, is so to all of them. Neither half nor double of it
changes a verdict of the corpus."""


class TemplateTwice(Check):
    """The chat template is applied twice: a turn begins within a turn that has said nothing yet.

    ## Why is this a bug?
    The script passes a rendered conversation as the content of a message, and the template renders it again: the words
    of the first template become words that somebody says. The model learns a form that no server will ever send it.

    ## What to do
    Apply the template once: give a trainer either messages or a rendered text (`dataset_text_field`), not a rendered
    text as a message.

    ## When it is right
    Messages that are empty on purpose.

    ## References
    - https://huggingface.co/docs/trl/dataset_formats
    """

    status = "new"
    needs = "language model whose tokenizer has a chat template"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = monitor.fact(LabelsGiven)
        self.template = monitor.fact(ChatTemplates)
        self.rows = self.twice = 0
        self.where: str | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for each in self.given.labelled if self.template.headers else ():
            for row in () if each.decoder else each.tokens.tolist():
                turns = self.template.turns(row)
                if turns:
                    self.looked = True
                    self.rows += 1
                    self.twice += any(
                        place + length == behind for (place, _, length), (behind, _, _) in pairwise(turns)
                    )
                    self.where = self.where or each.forward.where

    def on_end(self, event: End) -> None:
        if self.twice >= MIN_ROWS and self.twice >= MIN_SHARE * self.rows:
            self.found(
                expected="something that is said between the beginnings of two turns",
                observed=f"in {self.twice} of {self.rows} rows one turn begins right where another begins",
                where=self.where,
            )
