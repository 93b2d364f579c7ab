from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Backward, BackwardBegins, Clip, StepBegins
from harness.watch.facts.gradient_ledger import Added, GradientLedger
from harness.watch.monitor import Monitor


class MisplacedClipping(Check):
    """Clipping misses the gradients: not all of them are there yet, they are still scaled, used already, or not given.

    ## Why is this a bug?
    Clipping acts on the gradients as they are when it is called. Before the backward pass there are none, after the
    step they have been used, after one of several micro-batches they are a part, and before `scaler.unscale_` they
    are thousands of times too large, so that every update is cut to the same length. A generator such as
    `params = model.parameters()` gives its parameters once: clipping that gets it a second time clips nothing.

    ## What to do
    Call clip_grad_norm_ after the backward pass and before optimizer.step().

    ## When it is right
    Several backward passes of one batch with clipping in between are not reported, nor is measuring the norm
    (`clip_grad_norm_` with an infinite limit) once per window.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
    """

    id = "gradients::misplaced-clipping"
    needs = "clipping of gradients"
    in_windows = "all"
    formerly = ("gradients::clipped-in-time",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for cleared in self.gradients.cleared:
            if cleared.clipped_late is not None:
                self._not_in_between(cleared.clipped_late, "it clips after optimizer.step() has used them")

    def on_backward(self, event: Backward) -> None:
        for added in self.gradients.added:
            if added.clipped is not None and not _of_one_batch(added):
                self.found(
                    expected="clipping once all micro-batches of the update have been added up",
                    observed="it clips after a micro-batch, and then adds the gradients of further ones",
                    where=added.clipped.where,
                    update=self.monitor.update,
                    hint="Clip right before optimizer.step(), only where the window of accumulated micro-batches is "
                    "full.",
                )

    def on_clip(self, event: Clip) -> None:
        self.looked = True
        if event.used_up:
            self.found(
                expected="the parameters whose gradients are to be clipped",
                observed="none: a generator that was used up before, so nothing is clipped",
                where=event.where,
                update=self.monitor.update,
                hint="Give model.parameters() anew each time, or keep list(model.parameters()).",
            )
            return
        if any(ledger.clipped is event and ledger.scaled for ledger in self.gradients.ledgers):
            self.found(
                expected="gradients in their own scale when they are clipped",
                observed="they still carry the GradScaler's factor",
                where=event.where,
                update=self.monitor.update,
                hint="Call scaler.unscale_(optimizer) before clip_grad_norm_.",
            )

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


def _of_one_batch(added: Added) -> bool:
    """Whether it is one of several backward passes of one batch."""
    return added.entry.batch is not None and added.before is not None and added.before.batch == added.entry.batch
