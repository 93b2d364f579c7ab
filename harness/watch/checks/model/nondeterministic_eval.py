from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Forward
from harness.watch.facts.replays import SAME_ROWS, Replays
from harness.watch.monitor import Monitor


class NondeterministicEval(Check):
    """In eval mode a model gives other logits for the same rows when it is called again.

    ## Why is this a bug?
    Something random stays on where nothing random should be, usually a dropout that is called as a function and not
    told about eval mode. Scores are too low, and comparisons of runs and of reloaded models mean nothing.

    ## What to do
    Give functional.dropout training=self.training, and draw no random numbers in eval mode.

    `scaled_dot_product_attention` knows no mode at all: give it `dropout_p=self.p if self.training else 0.0`.

    ## When it is right
    Dropout that is kept on by putting its modules into train mode (Monte Carlo dropout) is not reported; nor are
    differences that rounding makes.

    ## References
    - https://github.com/pytorch/pytorch/issues/124464
    - https://github.com/huggingface/pytorch-image-models/pull/1978
    """

    id = "model::nondeterministic-eval"
    needs = "evaluation that can be repeated"
    formerly = ("mode::evaluation-repeats",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.replays = monitor.fact(Replays)

    def on_forward(self, event: Forward) -> None:
        self.looked |= SAME_ROWS in self.replays.compared
        apart = self.replays.latest.again
        if apart is not None:
            self.found(
                expected="the same logits from the same rows",
                observed=f"the second time they are {apart:.2g} apart, though the model is in eval mode",
                where=event.where,
            )
