from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class ScalerLost(Loss):
    """A GradScaler begins with another scale after a resume.

    ## Why is this a bug?
    It goes back to its first scale, overflows, and leaves updates out until it has come down again: updates that the
    uninterrupted run makes.

    ## What to do
    Save scaler.state_dict() with the weights and load it.

    ## When it is right
    Never within one run; where updates do not overflow, little is lost.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    id = "resume::scaler-lost"

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        parting = attempt.parting
        if attempt.anew or parting is None or parting.whole.scale == parting.resumed.scale:
            return None
        return Evidence(
            f"a loss that is multiplied by {parting.whole.scale:g} in update {parting.update}",
            f"by {parting.resumed.scale:g}",
            attempt.load_line,
            parting.update,
        )
