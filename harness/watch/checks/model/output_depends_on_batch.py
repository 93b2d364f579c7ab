from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Forward
from harness.watch.facts.replays import SINGLE_ROWS, Replays
from harness.watch.monitor import Monitor


class OutputDependsOnBatch(Check):
    """A row's logits depend on the other rows of its batch.

    ## Why is this a bug?
    The model reads the answer for a row from its neighbours, or blurs it with theirs. It predicts something different
    with another batch size, for a shuffled dataset, and for a single row when it is used.

    ## What to do
    Look for a softmax, mean or normalisation over the batch (dim=0), for reshapes that mix rows, and for recurrent
    layers or `nn.MultiheadAttention` that were made without `batch_first=True` and take the rows for tokens.

    ## When it is right
    Batch normalisation is not reported: in eval mode, in which the check calls the model, it uses its own statistics.
    Neither are models in which rows compete by their scores (experts that choose their best rows): `torch.topk` or
    `sort` along the rows shows it. Ignore this check if rows attend to one another, or share an expert's capacity, by
    design.

    ## References
    - https://karpathy.github.io/2019/04/25/recipe/
    """

    needs = "evaluation that can be repeated"
    formerly = ("padding::neighbours-do-not-matter",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.replays = monitor.fact(Replays)

    def on_forward(self, event: Forward) -> None:
        self.looked |= SINGLE_ROWS in self.replays.compared
        apart = self.replays.latest.alone
        if apart is not None:
            self.found(
                expected="the same logits for a row alone and among others",
                observed=f"among other rows they are {apart:.2g} apart",
                where=event.where,
            )
