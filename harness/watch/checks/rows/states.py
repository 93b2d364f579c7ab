from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.facts.carried_states import ShuffledRowsGiven


class StateOfOtherRows(Check):
    """The hidden state of one batch is passed to the next, although the rows are shuffled.

    ## Why is this a bug?
    The hidden state of a recurrent model says what came before in a sequence. If a state is carried from batch to
    batch, row 3 of a batch continues from the state that row 3 of the previous batch ended with; in shuffled batches
    that is another sequence, so the model gets noise, and different noise in training than in use.

    ## What to do
    Start each batch without a state: call model(inputs) instead of model(inputs, state), or set state = None at the top
    of the loop.

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

    def judge(self, fact: ShuffledRowsGiven) -> Verdict:
        if fact.state is None:
            return HELD
        return Found(
            expected="batches that start without a state, or that continue the previous batch",
            observed=f"the model gets a state of shape {fact.state}, its own output for the previous batch, but the "
            "loader shuffles: those were other rows",
        )
