from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Clip


class ClipsNothing(Check):
    """Clipping is given a generator of parameters that was used up before.

    ## Why is this a bug?
    `parameters = model.parameters()` yields its parameters only once. Counting them, or clipping them in the first
    update, leaves nothing for the next call, which then clips nothing and says nothing.

    ## What to do
    Give model.parameters() anew each time, or keep list(model.parameters()).

    ## When it is right
    Never. Lists, and parameters that have no gradients yet, are different cases.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.parameters
    """

    id = "gradients::clips-nothing"
    needs = "clipping of gradients"
    in_windows = "all"
    formerly = ("gradients::misplaced-clipping", "gradients::clipped-in-time")

    def on_clip(self, event: Clip) -> None:
        self.looked = True
        if event.used_up:
            self.found(
                expected="the parameters whose gradients are to be clipped",
                observed="none: a generator that was used up before",
                where=event.where,
                update=self.monitor.update,
            )
