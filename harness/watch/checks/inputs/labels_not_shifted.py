from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.visible_tokens import VisibleTokens
from harness.watch.monitor import Monitor


class LabelsNotShifted(Check):
    """A causal language model is taught to say the token that it is shown: its labels are not shifted.

    ## Why is this a bug?
    If the label at a position is the token at that position, the model copies its input. The loss quickly falls to
    nearly 0. Nothing of that is left when the model generates, since it must then predict the next token.

    ## What to do
    Shift the labels: those of text[:, :-1] are text[:, 1:]. Models of transformers that are given labels do so
    themselves.

    ## When it is right
    Models in which a position sees later ones (masked language models, autoencoders), and those from which the training
    hides tokens (word dropout), are not reported. Neither are those in which the tokens pass through a state without
    positions. A model that sees only what came before, and is trained to repeat each token as it is shown, is reported:
    it can copy.

    ## References
    - https://huggingface.co/docs/transformers/tasks/language_modeling
    """

    needs = "language model"
    formerly = ("inputs::next-token-visible",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(VisibleTokens)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for shown in self.tokens.shown:
            self.looked |= shown.taught.ahead > 0 or shown.target is not None
            if shown.target and not shown.taught.ahead:
                self.found(
                    expected="logits that depend on no token that is still to be said",
                    observed="each place is to say the token in it, on which its logits depend, as on none behind it",
                    where=shown.taught.where,
                    update=self.monitor.update,
                )
