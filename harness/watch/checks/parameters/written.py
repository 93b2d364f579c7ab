from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.parameters.observations.written_parameters import FrozenFollowed, LeftByUpdate, StartFollowed

RELATIVE, ABSOLUTE = 1e-5, 1e-7
"""Largest change that copying and converting may make, as a share of the largest element, and in itself. By reasoning:
some roundings of float32."""


class FrozenChanged(Check):
    """Frozen parameters change during training.

    ## Why is this a bug?
    Everyone expects frozen parameters to stay as they were loaded. But an optimizer still updates a parameter that has
    a gradient left, even one of 0, through its momentum and weight decay; and a loop over `model.parameters()` writes
    to all of them.

    ## What to do
    Clear a parameter's gradient (p.grad = None) when you freeze it, or remove it from the optimizer.

    Code that writes to parameters by hand should leave out those whose `requires_grad` is False.

    ## When it is right
    Parameters that are unfrozen again and trained from then on, and states that are loaded into frozen modules, are not
    reported. Neither are frozen parameters that keep a state (averages of other weights, running statistics).
    """

    explains = ("parameters::modified-outside-optimizer",)

    def judge(self, fact: FrozenFollowed) -> Verdict:
        if fact.changed is None:
            return HELD
        expected = "frozen parameters that stay as they are"
        if fact.by == "the optimizer":
            return Found(expected, f"the optimizer changed {fact.changed}, which had a gradient left when frozen")
        return Found(
            expected,
            observed=f"the script scales or clips frozen parameters between two updates: {fact.changed}",
            hint="Skip frozen parameters in code that writes to parameters.",
        )


class ModifiedOutsideOptimizer(Check):
    """Something other than the optimizer changes parameters between two updates.

    ## Why is this a bug?
    The optimizer's moments and the schedule know nothing of such changes. Weight decay by hand comes on top of the
    optimizer's own; an average of the weights that is written into the model, instead of being kept separately, slows
    the training down; memory that is shared with another model is trained by both.

    ## What to do
    Find the code that writes to the parameters: manual weight decay, averaged weights that are not swapped back, shared
    memory. Ignore this for a constraint on the weights, such as normalising them.

    ## When it is right
    Ignore this warning for a constraint on the weights that is intended, such as normalising them. Weights that are
    clipped between two bounds (a Wasserstein GAN's critic) are not reported. Neither are weights that are moved for a
    second backward pass and moved back before the update (adversarial training, SAM), or states that are loaded.
    """

    severity = "warning"

    def judge(self, fact: LeftByUpdate) -> Verdict:
        if not fact.apart > RELATIVE * fact.largest + ABSOLUTE or fact.clamped:  # NaN is another check's
            return HELD
        return Found(
            expected="parameters as the previous update left them",
            observed=f"{fact.name} has changed by up to {fact.apart:.2g} since the previous update",
        )


class Reset(Check):
    """Parameters are reset to their values from before the first update.

    ## Why is this a bug?
    Each reset undoes what the updates learned. The loss still moves a little between two resets, and the run ends with
    a model that has seen one update, or none.

    ## What to do
    Find the code that writes to the parameters between updates: a checkpoint that is reloaded, an average that is
    copied back, an initialisation that runs again.

    ## When it is right
    Loading a state with load_state_dict is not reported: that is how a script goes back to the start before another
    trial. Neither is an average of the weights that is kept separately from the model. Steps by the sign of the
    gradient (Lion, signSGD) may return to earlier values by themselves and are not reported. Neither is a step at the
    beginning that is undone until the loss gets smaller.
    """

    explains = ("parameters::modified-outside-optimizer",)

    def judge(self, fact: StartFollowed) -> Verdict:
        if not fact.set_back:
            return HELD
        return Found(
            expected="parameters as the previous updates left them",
            observed=f"{fact.name} has the same values as before the first update",
            update=fact.update,
        )
