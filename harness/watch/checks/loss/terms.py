"""Losses and terms of losses that train nothing."""

from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.loss.observations.loss_terms import MIN_VALUES, TermAdded, TermReaches
from harness.watch.checks.loss.observations.same_losses import LossesSummed
from harness.watch.checks.loss.observations.term_values import ALWAYS, MIN_TIMES, TermOverTraining, WeightOfTerm
from harness.watch.facts.graphs import LossReaches

MIN_PASSES = 2
"""Backward passes in which it must be so: every optimizer has been made by then."""


class LeftOut(Check):
    """A loss is computed but never used in a backward pass, so the parameters that only it reaches are not trained.

    ## Why is this a bug?
    Each of several losses trains what it reaches only if it is part of what `backward()` is called on. A head whose
    loss is computed, logged and left out of the sum stays as it was initialised.

    ## What to do
    Add this loss to the one that you call `backward()` on.

    ## When it is right
    A loss that is computed only for monitoring, whose parameters another loss trains, is not reported. Neither are
    parameters that get a gradient at any time, or that no optimizer holds.
    """

    since = "0.3.0"
    explains = ("gradients::cut-off",)

    def judge(self, fact: LossReaches) -> Verdict:
        if fact.untrained is None:
            return HELD
        return Found(
            expected="a backward pass that includes this loss",
            observed=f"this {fact.function} reaches {fact.untrained}, but no backward pass does, so they never get a "
            "gradient",
        )


class TermAlwaysZero(Check):
    """A term of the loss is exactly 0 in every update: it compares something with itself.

    ## Why is this a bug?
    A divergence from a reference that is the model itself, the consistency of an output with that same output, a
    penalty on the distance of weights from themselves: each is 0, with a gradient of 0, and holds nothing back.

    ## What to do
    Look at the two sides of the term: make a reference with `copy.deepcopy`, and call the model again for a second
    output.

    ## When it is right
    A term that is weighted by 0, and one that is 0 within a margin (a hinge, a clamp, a mask), are not reported.
    Neither is one that leaves 0 at any time, as the divergence from a reference does after the first update.
    """

    new_since = "0.3.0"
    severity = "warning"

    def judge(self, fact: TermOverTraining) -> Verdict:
        if fact.zeros < ALWAYS or fact.times < MIN_TIMES:
            return HELD
        return Found(
            expected="a term that is not always 0",
            observed=f"the term added here is exactly 0 in all {fact.zeros} updates looked at, out of {fact.times}: "
            "both of its sides are the same, so it has no effect",
        )


class TermTwice(Check):
    """Two terms of the loss are the same one: both are given the same outputs and the same targets.

    ## Why is this a bug?
    The second term was to be another: the loss of the other direction of a contrastive pair, of a second head, of a
    second target. The sum is twice the first, what was meant is never trained, and the two numbers in the log agree in
    every digit.

    ## What to do
    Give the second term its own outputs: `logits.t()` for the other direction, the second head's output, its targets.

    ## When it is right
    Two losses of the same outputs with other targets, weights or another function are not reported.
    """

    new_since = "0.4.0"

    def judge(self, fact: LossesSummed) -> Verdict:
        if fact.same is None or fact.times != MIN_PASSES:
            return HELD
        return Found(
            expected="terms of other outputs or other targets",
            observed=f"{fact.same} is computed a second time of the same outputs and the same targets, and added, in "
            f"{fact.times} backward passes",
        )


class TermOfUntrainedParameters(Check):
    """A term of the loss reaches only parameters that no optimizer holds, so it trains nothing.

    ## Why is this a bug?
    A penalty may be computed from the weights of a copy, of the model before it was wrapped, or of a model that was
    made again. It has gradients, but they end up in tensors that no optimizer updates. The penalty is logged and does
    nothing for the model in training.

    ## What to do
    Compute the term from the model that the optimizer was given.

    ## When it is right
    A term that reaches trained parameters among others is not reported, nor is one that reaches only an input.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html
    """

    since = "0.3.0"
    explains = ("optimizer::missing-parameters", "parameters::not-registered", "loss::term-always-zero")

    def judge(self, fact: TermReaches) -> Verdict:
        if fact.untrained is None or fact.times != MIN_PASSES:
            return HELD
        return Found(
            expected="a term that reaches a parameter in an optimizer",
            observed=f"the term added here reaches only {fact.untrained}, and no optimizer holds "
            f"{'it' if fact.tensors == 1 else 'any of them'}",
        )


class TermWithoutGradient(Check):
    """A term of the loss has no gradient: it changes the number that is logged and trains nothing.

    ## Why is this a bug?
    The derivative of a sum is the sum of the derivatives, and that of a tensor without a graph is 0. A penalty or an
    auxiliary loss has no effect if it is computed under `no_grad()`, from detached tensors, from frozen weights, or
    from `autograd.grad` without `create_graph=True`. It is logged and moves the loss curve, but every weight is what it
    would be without it.

    ## What to do
    Compute the term without `no_grad()`, `detach()`, `.data`, `.item()` or numpy on the way; for a penalty on
    gradients, call `autograd.grad` with `create_graph=True`.

    ## When it is right
    A number that is the same in every batch, such as a normalising constant, is not reported. Neither is a constant
    within a function that is not linear, such as the reference's log-probability in DPO. Ignore this warning for a term
    that is added only for the record, or for one on a part that is frozen for a while.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
    """

    new_since = "0.3.0"
    severity = "warning"

    def judge(self, fact: TermAdded) -> Verdict:
        if len(fact.constants) != MIN_VALUES:
            return HELD
        listed = ", ".join(f"{value:.3g}" for value in sorted(fact.constants))
        return Found(
            expected="a gradient for each term that is computed from the batch or the weights",
            observed=f"the term added here has no gradient; it was {listed} in {MIN_VALUES} batches",
        )


class WeightRoundedToZero(Check):
    """The weight of a loss term is rounded down to 0 during the whole training, so the term never counts.

    ## Why is this a bug?
    `epoch // warmup` is 0 until the warmup is over, while `epoch / warmup` rises; `int(step / total)` is 0 until the
    very end. The term with this weight is computed and logged in every batch, but trains nothing.

    ## What to do
    Divide with `/`, and limit the result with `min(1.0, ...)`.

    ## When it is right
    A weight that is set to 0, by an argument or as a constant, is not reported. Neither is one that depends on a
    condition (`if epoch >= start`), one that is above 0 at any time, or a training run that was shortened.
    """

    since = "0.3.0"

    def judge(self, fact: WeightOfTerm) -> Verdict:
        if fact.rounded is None:
            return HELD
        return Found(
            expected="a weight that rises above 0 during the training",
            observed=f"the weight was 0 all {fact.zeros} times it was used: `{fact.rounded}` rounds it down",
        )
