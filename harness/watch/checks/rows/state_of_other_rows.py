from __future__ import annotations

from torch.utils.data import RandomSampler

from harness.watch.check import Check
from harness.watch.events import Forward
from harness.watch.facts.carried_states import CarriedStates
from harness.watch.facts.samplers import row_sampler
from harness.watch.monitor import ALWAYS_SAMPLED, Monitor


class StateOfOtherRows(Check):
    """The state that a batch left behind is given to the next one, though the rows are shuffled.

    ## Why is this a bug?
    The hidden state of a recurrent model says what came before in a sequence. Where a state is carried from batch to
    batch, row 3 of a batch goes on with what row 3 of the batch before was left with; in shuffled batches that is
    another sequence, so what the model is given is noise, and other noise in training than in use.

    ## What to do
    Begin each batch without a state: model(inputs) instead of model(inputs, state), or state = None at the top of the
    loop.

    To carry it, give the batches in the order of the sequences: shuffle=False, and row k of each batch the continuation
    of row k of the one before.

    ## When it is right
    Parts of one batch that are gone through one after the other (truncated backpropagation), batches that come in
    order, and samplers of the script's own are not reported; nor is a state that has no row for each row of the batch,
    such as a memory that all rows share.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html (h_0 and c_0 default to zeros)
    """

    id = "rows::state-of-other-rows"
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
        rows, state = batch.of.loader.batch_size if batch.indices is None else len(batch.indices), self.carried.given
        if state is not None and rows in state:
            self.found(
                expected="batches that begin without a state, or come in their order",
                observed=f"a state of shape {tuple(state)} that is what the model said of the batch before, whose rows "
                "were others: the loader shuffles",
                where=event.where,
                update=self.monitor.update,
            )
