from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss, several


class WeightsLost(Loss):
    """After a resume, the weights differ from those at the time of the checkpoint.

    ## Why is this a bug?
    The checkpoint lacks tensors that training changes (a head, buffers such as BatchNorm's, a second model), holds them
    in a lower precision, or is not the one that belongs to the optimizer's state.

    ## What to do
    Save and load the state_dict() of every trained module, including buffers, in its training precision, and all at the
    same update.

    ## When it is right
    Never within one run: a new run that starts from old weights is not a resume. Running statistics are compared where
    the first update's loss is the same as without the kill; other rows make others.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        parting = attempt.parting
        if attempt.anew or parting is None or parting.after or not parting.weights:
            return None
        names = parting.weights
        if parting.whole.modes != parting.resumed.modes and not parting.whole.gradients.keys() & set(names):
            return None  # buffers, which the forward pass before the step moves in training mode alone
        if parting.whole.losses != parting.resumed.losses:  # it was given something else
            names = [name for name in names if name not in _moved_by_forward(attempt, parting.update)]
            if not names:
                return None
        of = "all tensors" if len(names) == len(parting.whole.weights) else several(names)
        where, how = attempt.line_of({name: parting.whole.weights[name] for name in names})
        expected = f"the weights that update {parting.update} began with"
        return Evidence(expected, f"different weights in {of}; {how}", where, parting.update)


def _moved_by_forward(attempt: Attempt, update: int) -> set[str]:
    """Tensors without a gradient that change from update to update, as running statistics do: what they are before a
    step depends on the rows that came for it, too."""
    beside = attempt.whole.updates[max(0, update - 2) : update + 1]
    whole = beside[min(1, update - 1)]
    without = whole.weights.keys() - whole.gradients.keys()
    return {name for name in without if len({each.weights.get(name) for each in beside}) > 1}
