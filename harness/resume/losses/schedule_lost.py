from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class ScheduleLost(Loss):
    """After a resume, the learning rate (or another scheduled value) continues from the wrong place in its schedule.

    ## Why is this a bug?
    The warmup runs again, or the decay starts over: from the resume on, every update uses a different learning rate
    than planned, and no log says so.

    ## What to do
    Save scheduler.state_dict() with the weights, and load it after the optimizer's; last_epoch alone is not enough.

    ## When it is right
    When the rest of the run is meant to have another schedule.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        if attempt.anew:
            return None
        if (parting := attempt.rates_part) is not None:
            rates = (", ".join(f"{lr:.6g}" for lr in each.lr) for each in (parting.whole, parting.resumed))
            expected, observed = (f"a learning rate of {each}" for each in rates)
        elif (parting := attempt.parting) is not None and parting.whole.options != parting.resumed.options:
            expected, observed = (
                "the options that the optimizer had",
                "different ones, such as weight decay or momentum",
            )
        else:
            return None
        return Evidence(f"{expected} in update {parting.update}", observed, attempt.load_line, parting.update)
