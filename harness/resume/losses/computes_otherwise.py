from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss, several


class ComputesOtherwise(Loss):
    """After a resume, the same weights and rows give a different loss, gradient or update.

    ## Why is this a bug?
    Something other than a tensor was lost: a model that was left in evaluation mode, parameters that are frozen or no
    longer are, clipping, a loss weight, a precision.

    ## What to do
    Build model and loss in the same way at every start, before you load the checkpoint; call model.train() at the start
    of each epoch.

    ## When it is right
    Never on one machine: two uninterrupted runs of the script were the same.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        parting = attempt.parting
        if attempt.anew or parting is None:
            return None
        whole, resumed = parting.whole, parting.resumed
        if whole.modes != resumed.modes:
            observed = "different modules are in training mode, or different parameters are frozen"
        elif whole.losses != resumed.losses:
            observed = "a different loss"
        elif whole.gradients != resumed.gradients:
            observed = "different gradients"
        elif parting.weights:
            observed = f"different weights in {several(parting.weights)}"
        else:
            observed = "the evaluated models give different outputs"
        return Evidence(
            f"update {parting.update} to be computed as without the kill", observed, attempt.load_line, parting.update
        )
