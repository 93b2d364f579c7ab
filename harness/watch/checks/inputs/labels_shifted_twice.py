from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.next_tokens import NextTokens
from harness.watch.monitor import Monitor


class LabelsShiftedTwice(Check):
    """A language model is taught the token after the next one: its labels are shifted twice.

    ## Why is this a bug?
    The causal language models of transformers shift the labels themselves: they expect `labels=input_ids`. If the
    script shifts them too, each position is taught to predict the token two positions ahead. The loss falls to that of
    a harder task, and the text that the model generates leaves out every other word.

    ## What to do
    Shift once: give the model labels=input_ids, or shift them and call the loss function with its logits.

    ## When it is right
    Heads that predict several tokens ahead, alongside one that predicts the next, are not reported.

    ## References
    - https://github.com/huggingface/accelerate/issues/4303
    - https://huggingface.co/docs/transformers/model_doc/gpt2#transformers.GPT2LMHeadModel.forward.labels
    """

    needs = "language model"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(NextTokens)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        taught = self.tokens.taught
        if not taught:
            return
        self.looked = True
        ahead = {each.ahead for each in taught}
        if ahead == {2}:
            places = int(taught[0].counted.sum())
            self.found(
                expected="the next token as the target of each place",
                observed=f"the token after the next one is the target of all {places} places that count",
                where=taught[0].where,
                update=self.monitor.update,
            )
