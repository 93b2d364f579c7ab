from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Clip, StepBegins
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.monitor import Monitor


class MisplacedClipping(Check):
    """Gradients are clipped before the backward pass, where there are none yet, or after the step that used them.

    ## Why is this a bug?
    Clipping acts on the gradients as they are when it is called. Before the backward pass there are none, and after the
    step they have been used: a single large gradient changes the weights as if nothing were clipped.

    ## What to do
    Call clip_grad_norm_ after the backward pass and before optimizer.step().

    ## When it is right
    Several backward passes of one batch with clipping in between are not reported, nor is measuring the norm
    (`clip_grad_norm_` with an infinite limit) once per window.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    id = "gradients::misplaced-clipping"
    needs = "clipping of gradients"
    in_windows = "all"
    formerly = ("gradients::clipped-in-time",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)

    def on_clip(self, event: Clip) -> None:
        self.looked = True

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for cleared in self.gradients.cleared:
            if cleared.clipped_late is not None:
                self._not_in_between(cleared.clipped_late, "it clips after optimizer.step() has used them")

    def on_step_begins(self, event: StepBegins) -> None:
        window = self.gradients.window
        if window is not None and not window.empty and window.clipped_without is not None and event.number > 1:
            self._not_in_between(window.clipped_without, "there are no gradients yet when it clips")

    def _not_in_between(self, clip: Clip, observed: str) -> None:
        self.found(
            expected="clipping between the backward pass and optimizer.step()",
            observed=observed,
            where=clip.where,
            update=self.monitor.update,
        )
