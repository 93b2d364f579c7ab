from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class ScalerLost(Loss):
    """After a resume, the GradScaler has a different scale.

    ## Why is this a bug?
    It goes back to its first scale, overflows, and skips updates until it has come down again: updates that the
    uninterrupted run makes.

    ## What to do
    Save scaler.state_dict() with the weights and load it.

    ## When it is right
    Never within one run; if updates do not overflow, little is lost.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    explains = ("resume::rows-skipped", "resume::rows-repeated", "resume::data-order-lost", "resume::epoch-skipped")

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        parting = attempt.parting
        if attempt.anew or parting is None or parting.same_scale:
            return None
        scales = [
            f"multiplied by {each.scale:g}, after {each.skipped} skipped steps"
            for each in (parting.whole, parting.resumed)
        ]
        return Evidence(
            f"a loss {scales[0]}, in update {parting.update}",
            scales[1],
            attempt.load_line,
            parting.update,
        )
