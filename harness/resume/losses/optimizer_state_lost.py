from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss, several


class OptimizerStateLost(Loss):
    """After a resume, the optimizer's state is wrong: moments and step counts are lost.

    ## Why is this a bug?
    Adam without its moments takes its next updates at nearly full learning rate in the sign of single gradients, and
    its bias correction starts over: the loss jumps after each resume, and the run is no longer the same.

    ## What to do
    Save optimizer.state_dict() with the weights, and load it into the new optimizer once it has its parameters.

    ## When it is right
    When an optimizer is made anew on purpose, for a new phase of the training.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        parting = attempt.parting
        if attempt.anew or parting is None or not parting.state or (parting.after and parting.weights):
            return None
        whole, resumed = parting.whole.state, parting.resumed.state
        where, how = attempt.line_of({name: whole[name] for name in parting.state if name in whole})
        observed = f"a different state in {several(parting.state)}" if resumed else "none"
        expected = f"the state that the optimizer had before update {parting.update}"
        return Evidence(expected, f"{observed}; {how}", where, parting.update)
