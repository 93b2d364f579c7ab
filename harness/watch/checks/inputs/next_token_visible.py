from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.visible_tokens import VisibleTokens
from harness.watch.monitor import Monitor


class NextTokenVisible(Check):
    """A language model sees the token that it must predict: a causal mask is missing.

    ## Why is this a bug?
    If all positions attend to all others, the next token is in plain sight, and the model learns to copy it. The loss
    quickly falls to nearly 0. Nothing of that is left when the model generates, since there is then no next token to
    see.

    ## What to do
    Give the layers a causal mask: torch.nn.Transformer.generate_square_subsequent_mask, is_causal=True, or
    is_decoder=True in the configuration of a BERT.

    ## When it is right
    Models that are taught the tokens at their own positions (masked language models, autoencoders) are not reported.
    Neither are those in which the tokens pass through a state without positions, such as the code of a variational
    autoencoder.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Transformer.html
    """

    needs = "language model"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(VisibleTokens)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for shown in self.tokens.shown:
            if not shown.taught.ahead:
                continue
            self.looked |= shown.target is not None
            if shown.target:
                self.found(
                    expected="logits that depend on no token that is still to be said",
                    observed="with another next token the logits of a place change: it sees its own target",
                    where=shown.taught.forward.where,
                    update=self.monitor.update,
                )
