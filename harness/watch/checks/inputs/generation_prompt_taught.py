from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End
from harness.watch.facts.chat_templates import ChatTemplates
from harness.watch.facts.labels_given import LabelsGiven
from harness.watch.monitor import Monitor

MIN_ROWS = 8
"""Rows that must end so. By reasoning: one or two may have been cut off there."""

MIN_SHARE = 0.5
"""Share of the rows that must end so. What `add_generation_prompt` does, it does to all of them. Neither half nor
double of it changes a verdict of the corpus."""


class GenerationPromptTaught(Check):
    """Training rows end with the beginning of an answer that does not come.

    ## Why is this a bug?
    `add_generation_prompt=True` writes the beginning of the assistant's next turn, for the model to continue. In a
    training row, the answer is already there: the model is taught that a new, empty turn of its own follows its answer,
    and in use it keeps talking to itself.

    ## What to do
    `apply_chat_template(messages, add_generation_prompt=False)` for training rows; True for prompts alone.

    ## When it is right
    Rows that are only prompts, with answers sampled during the training (as in GRPO), have no labels and are not looked
    at.

    ## References
    - https://huggingface.co/docs/transformers/chat_templating#add_generation_prompt
    """

    status = "new"
    needs = "language model whose tokenizer has a chat template"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = monitor.fact(LabelsGiven)
        self.template = monitor.fact(ChatTemplates)
        self.rows = self.open = 0
        self.where: str | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for each in self.given.labelled if self.template.headers else ():
            for row, real in () if each.decoder else zip(each.tokens, each.real, strict=True):
                tokens = row[real].tolist()
                while tokens[-1:] == [getattr(self.template.tokenizer, "eos_token_id", None)]:
                    tokens.pop()  # which the tokenizer or a trainer has added
                turns = self.template.turns(tokens)
                if turns:
                    self.looked = True
                    place, role, length = turns[-1]
                    self.rows += 1
                    self.open += role == "assistant" and place + length == len(tokens)
                    self.where = self.where or each.forward.where

    def on_end(self, event: End) -> None:
        if self.open >= MIN_ROWS and self.open >= MIN_SHARE * self.rows:
            self.found(
                expected="rows that end with what the assistant says",
                observed=f"{self.open} of {self.rows} rows end right where a turn of the assistant begins",
                where=self.where,
            )
