from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.facts.copies import MIN_UPDATES, CopyFollowed, CopyFound, CopyOver

MEANS_OF_AN_AVERAGE = 3
"""Means, and updates, from which on it is no accident."""

MEANS_IN_A_ROW = 5
"""Means in a row, as averages begin with large weights and go on with small ones."""

CONSTANT = 1e-3
"""How far the weight may be from one mean to the next. Rounding is below."""


class CopyAlsoTrained(Check):
    """A moving average of the network is also trained by an optimizer.

    ## Why is this a bug?
    A target that learns from the loss gives way to it: in self-distillation both networks can agree on a constant, and
    a target network no longer deserves its name. This happens when the optimizer gets `model.parameters()` and the
    target is a part of the model.

    ## What to do
    Give the optimizer only the parameters of the network, and compute the target under `torch.no_grad()` or with
    `requires_grad_(False)`.

    ## When it is right
    An average that no optimizer changes is not reported, whatever gradients it has. Neither are two networks with the
    same architecture that are both trained.
    """

    new_since = "0.3.0"
    explains = ("parameters::modified-outside-optimizer",)

    def judge(self, fact: CopyFollowed) -> Verdict:
        means = [weight for weight in fact.weights if 0 < weight <= 1]
        if len(means) < MEANS_OF_AN_AVERAGE:
            return NOTHING_TO_JUDGE
        if fact.steps < MEANS_OF_AN_AVERAGE:
            return HELD
        return Found(
            expected="a target that only follows the network",
            observed=f"{fact.shown} moves towards the network by {means[-1]:.3g} of the distance each time, but an "
            "optimizer also trains it",
        )


class CopyFollowsTooFast(Check):
    """A moving average of the network follows it too fast, because its two weights are swapped.

    ## Why is this a bug?
    A target network or an average should change slowly: by a thousandth to a tenth of the way in each update. With
    `tau * target + (1 - tau) * online` in place of `tau * online + (1 - tau) * target` it is nearly the network itself,
    and stabilises nothing.

    ## What to do
    Swap the two weights: `target.lerp_(online, tau)` with a small tau.

    ## When it is right
    A copy that is set to the whole network, at any interval, is not reported. Neither is an average whose weights
    change, such as one that begins with large steps.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.lerp_.html
    """

    new_since = "0.3.0"

    def judge(self, fact: CopyFollowed) -> Verdict:
        latest = fact.weights[-MEANS_IN_A_ROW:]
        if len(latest) < MEANS_IN_A_ROW:
            return NOTHING_TO_JUDGE
        constant = max(latest) - min(latest) < CONSTANT
        if not (constant and min(latest) > 0.5 and max(latest) < 1 - CONSTANT):
            return HELD
        return Found(
            expected="an average that moves a small part of the way to the network in each update",
            observed=f"{fact.shown} is set to {latest[-1]:.3g} of the network and {1 - latest[-1]:.3g} of "
            "itself: tau is on the wrong side, so the average is nearly the network",
        )


class CopySharesMemory(Check):
    """A copy of the network shares the network's memory, so it changes with every update.

    ## Why is this a bug?
    `target.data = online.data` copies nothing: both parameters share one piece of memory from then on. A target network
    that should lag behind is the network itself, and training on it chases its own tail.

    ## What to do
    Copy the values: `target.data.copy_(online.data)`, or `target.load_state_dict(online.state_dict())`.

    ## When it is right
    One parameter in two modules, such as tied weights, is not reported; only two parameters that share memory are.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html
    """

    since = "0.3.0"

    def judge(self, fact: CopyFound) -> Verdict:
        if not fact.shares:
            return HELD
        return Found(
            expected="a copy with its own memory",
            observed=f"the parameters of {fact.shown} and of the network share the same memory, so the copy never lags "
            "behind",
        )


class CopyWithoutBuffers(Check):
    """A copy follows the network's parameters but keeps its initial running statistics.

    ## Why is this a bug?
    Batch normalisation keeps its running mean and variance in buffers, which `parameters()` does not yield. A moving
    average that goes through the parameters alone leaves them at 0 and 1: in eval mode the copy normalises by numbers
    that have nothing to do with its inputs.

    ## What to do
    Copy the buffers as well: `for kept, new in zip(copy.buffers(), model.buffers()): kept.copy_(new)`. Or make
    `AveragedModel` with `use_buffers=True`, or call `update_bn` before you use the copy.

    ## When it is right
    A copy in train mode computes its own statistics and is not reported. Neither is one whose statistics are refreshed
    before it is called in eval mode.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """

    new_since = "0.3.0"
    needs = "moving average of a network with batch normalisation"

    def judge(self, fact: CopyOver) -> Verdict:
        if fact.stale is not None:
            return Found(
                expected="running statistics that follow the network, like the parameters",
                observed=f"{fact.shown} is called in eval mode with its initial running mean, although the network's "
                f"changed over {fact.updates} updates: the buffers are not copied",
                where=fact.stale,
            )
        return HELD if fact.has_norms and fact.follows and fact.updates >= MIN_UPDATES else NOTHING_TO_JUDGE
