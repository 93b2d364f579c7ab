from __future__ import annotations

import torch
from torch.utils.data import RandomSampler

from harness.watch.check import Check
from harness.watch.events import Forward
from harness.watch.facts.carried_states import CarriedStates
from harness.watch.facts.samplers import row_sampler
from harness.watch.facts.twins import Twin, asking, with_another
from harness.watch.monitor import ALWAYS_SAMPLED, Monitor


class StateOfOtherRows(Check):
    """The state that a batch left behind is given to the next one, though the rows are shuffled.

    ## Why is this a bug?
    The hidden state of a recurrent model says what came before in a sequence. If a state is carried from batch to
    batch, row 3 of a batch continues from the state that row 3 of the previous batch ended with; in shuffled batches
    that is another sequence, so the model gets noise, and different noise in training than in use.

    ## What to do
    Begin each batch without a state: model(inputs) instead of model(inputs, state), or state = None at the top of the
    loop.

    To carry it, give the batches in the order of the sequences: `shuffle=False`, with row k of each batch continuing
    row k of the one before.

    ## When it is right
    Parts of one batch that are processed one after the other (truncated backpropagation), batches that come in order,
    and samplers of your own are not reported. Neither is a state in which no part is about one row alone, such as a
    memory that all rows share. The check does not see a state that the model keeps for itself, as an attribute.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html (h_0 and c_0 default to zeros)
    """

    severity = "warning"
    needs = "training on shuffled rows"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.carried = monitor.fact(CarriedStates)

    def on_forward(self, event: Forward) -> None:
        batch = event.batch
        if batch is None or not event.gradients or self.monitor.update > ALWAYS_SAMPLED:
            return
        if not isinstance(row_sampler(batch.of.loader), RandomSampler):
            return
        self.looked |= self.monitor.updates_made > 0
        state = self.carried.given
        rows = batch.of.loader.batch_size if batch.indices is None else len(batch.indices)
        if state is not None and rows is not None and rows > 1 and self._is_by_row(event, state, rows):
            self.found(
                expected="batches that begin without a state, or come in their order",
                observed=f"a state of shape {tuple(state.shape)} that is what the model said of the batch before, "
                "whose rows were others: the loader shuffles",
                where=event.where,
                update=self.monitor.update,
            )

    def _is_by_row(self, event: Forward, state: torch.Tensor, rows: int) -> bool:
        """Whether a part of the state concerns one row alone, as a copy of the model says that is given another one."""
        dims = [dim for dim, length in enumerate(state.shape) if length == rows]
        if not dims:
            return False
        with asking(self.monitor, f"whether the state that {type(event.model).__name__} is given concerns single rows"):
            twin = Twin(event.model)
            before = twin.logits(*with_another(event, state, state))
            others = (twin.logits(*with_another(event, state, _with_another_first(state, dim))) for dim in dims)
            return any(_changes_one(before, after, rows) for after in others)
        return False


def _with_another_first(state: torch.Tensor, dim: int) -> torch.Tensor:
    state = state.detach().clone()
    state.select(dim, 0).add_(1)
    return state


def _changes_one(before: torch.Tensor | None, after: torch.Tensor | None, rows: int) -> bool:
    """Whether the first of so many rows is another, in whichever dimension they lie, and all others are the same."""
    if before is None or after is None or before.shape != after.shape:
        return False
    differ = before != after
    by_row = [differ.transpose(0, dim).flatten(1).any(1) for dim, length in enumerate(differ.shape) if length == rows]
    return any(bool(each[0]) and not bool(each[1:].any()) for each in by_row)
