from __future__ import annotations

import math

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.optimizer.observations.optimizer_steps import (
    BackwardWithoutOptimizer,
    OptimizerGiven,
    OptimizerMadeAgain,
    OptimizerUnused,
    StateCounted,
    StepsMade,
)
from harness.watch.events import StepBegins
from harness.watch.facts.accelerators import StepsWithAccelerator

MIN_UPDATES = 8
"""Updates that must have been seen. By reasoning: two windows of the usual four."""


class MadeAgain(Check):
    """The optimizer is created again during training, so its moments are lost.

    ## Why is this a bug?
    Adam's moments and SGD's momentum are averages over many updates. An optimizer that is made inside the loop starts
    them at 0 each time: with AdamW every update is then as large as the learning rate allows, whatever the gradients
    are. A scheduler keeps driving the old optimizer.

    ## What to do
    Create the optimizer once, before the loop.

    ## When it is right
    Another optimizer that is made on another line, over other tensors, for another dataset (the next task of several),
    or once on the same line with another learning rate (a second stage of the training) is not reported. Neither is one
    that follows after more than one pass over the rows (a cycle with a schedule of its own, another round of pruning),
    a whole training that is called twice, or one that begins with a state that was loaded into the model, as each
    client's does in federated learning. Plain SGD without momentum has nothing to lose.
    """

    needs = "second update"
    in_windows = "all"
    explains = (
        "schedule::drives-another-optimizer",
        "schedule::lr-zero",
        "parameters::unchanged",
        "weights::already-trained",
    )

    def judge(self, fact: OptimizerMadeAgain) -> Verdict:
        return Found(
            expected="one optimizer for the whole training",
            observed=f"this line creates another {fact.optimizer} for the same parameters, so the moments are lost",
        )

    def judge_step(self, step: StepBegins) -> Verdict:
        return HELD if step.at.updates_made > 0 else NOTHING_TO_JUDGE


class NeverMade(Check):
    """Gradients are computed, but there is no optimizer and nothing changes the parameters.

    ## Why is this a bug?
    Gradients change nothing by themselves. An update that is written by hand as `p = p - lr * p.grad` only gives
    another tensor the name `p`, and the model keeps the parameters that it had.

    ## What to do
    Create an optimizer with `model.parameters()`, and call its `step()` after each backward pass.

    Write an update by hand into the parameter itself, under `no_grad()`: `p -= lr * p.grad`.

    ## When it is right
    This is reported only if the script goes through the same rows again, in train mode, and computes no gradients of an
    input: then the only explanation is an update that changes nothing. Scripts that only look at gradients a few times,
    and updates by hand that change something, are not reported.
    """

    explains = ("gradients::lost", "optimizer::missing-parameters")

    def judge(self, fact: BackwardWithoutOptimizer) -> Verdict:
        if fact.meant:
            return HELD
        return Found(
            expected="parameters that change between two backward passes of the same rows",
            observed=f"no optimizer was created, and after {fact.passes} backward passes the parameters are unchanged",
            update=1,
        )


class NeverSteps(Check):
    """Gradients are computed for an optimizer, but its `step()` is never called.

    ## Why is this a bug?
    Gradients change nothing by themselves: the loss stays that of the first weights to the end. If a script has an
    optimizer for each of several networks, the one whose step is missing stays as it was made.

    ## What to do
    Call `optimizer.step()` after the backward pass, or after the last micro-batch of an update if you accumulate
    gradients.

    ## When it is right
    Scripts that only look at gradients a few times are not reported, nor are updates that are written by hand. If other
    optimizers do step, one that does not is reported only if its gradients are cleared in the loop and nothing else
    changes what it holds.
    """

    explains = ("gradients::lost", "optimizer::missing-parameters")

    def judge(self, fact: StepsMade) -> Verdict:
        if fact.any_step:
            return HELD
        return Found(
            expected="a call of optimizer.step() for each update",
            observed=f"{fact.passes} backward passes, but no optimizer step",
            update=1,
            details={"case": "no-step"},
        )

    def judge_unused(self, fact: OptimizerUnused) -> Verdict:
        return Found(
            expected="a call of step() for every optimizer whose gradients are cleared in the loop",
            observed=f"step() of this optimizer is never called, and nothing else changes {fact.shown}",
            update=1,
            hint="Call step() on this optimizer after the backward pass of its loss.",
        )


class NotAsAsked(Check):
    """The optimizer's learning rate or weight decay differs from the one in TrainingArguments.

    ## Why is this a bug?
    Trainer makes an optimizer from its arguments unless it is given one. An optimizer in `optimizers=(…)` keeps its own
    numbers, and those in the arguments are ignored without a word, though they are logged and kept with the run.

    ## What to do
    Pass the values to the optimizer itself, or don't pass `optimizers` to Trainer.

    ## When it is right
    An optimizer of your own is not reported if the arguments repeat a default; ignore the warning if you use the
    arguments of another run again.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/trainer
    """

    new_since = "0.2.0"

    def judge(self, fact: OptimizerGiven) -> Verdict:
        for setting in fact.settings:
            has, asked, name = (
                [each for each in setting.has if isinstance(each, int | float)],
                setting.asked,
                setting.name,
            )
            if not any(math.isclose(value, asked, rel_tol=1e-6) for value in has):
                told = ", ".join(dict.fromkeys(f"{value:g}" for value in has)) or "none"
                return Found(
                    expected=f"{name}={asked:g}, as in TrainingArguments",
                    observed=f"the optimizer passed to Trainer has {told}, and {name}={asked:g} is ignored",
                    where=setting.where,
                )
        return HELD


class NotPrepared(Check):
    """The optimizer was not prepared by the Accelerator, so it steps at every micro-batch despite accumulation.

    ## Why is this a bug?
    `accelerator.prepare` returns an optimizer whose `step()` and `zero_grad()` do nothing until a window is full. The
    original optimizer does not know about that: it steps at each micro-batch, on a gradient that was divided for the
    window. The batch is smaller by the factor by which it was meant to be larger, and so is each update.

    ## What to do
    Use what `accelerator.prepare` returns: `model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer,
    loader, scheduler)`.

    ## When it is right
    Without accumulation, mixed precision in float16 or several processes, a prepared optimizer does the same as the
    original, and nothing is reported.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation
    """

    new_since = "0.3.0"

    def judge(self, fact: StepsWithAccelerator) -> Verdict:
        if not MIN_UPDATES <= fact.passes <= fact.steps:
            return HELD
        return Found(
            expected=f"one update for {fact.micro_batches} backward passes",
            observed=f"{fact.steps} updates in {fact.passes} backward passes, by an optimizer that is not the one "
            "returned by accelerator.prepare",
        )


class StateEmptied(Check):
    """The optimizer's state is emptied during training, so its moments are lost.

    ## Why is this a bug?
    Adam's moments and SGD's momentum are averages over many updates. With `optimizer.state.clear()`, or a new dict in
    its place, they begin at 0 again, and so does the count by which Adam corrects them: the next update is as large as
    the learning rate allows, whatever the gradients are.

    ## What to do
    Don't clear or replace `optimizer.state`; use `optimizer.load_state_dict` to restore a saved state.

    ## When it is right
    A state that is loaded, and moments that are scaled or set by hand while the count goes on, are not reported.
    Neither is an optimizer without such a count, such as plain SGD. The heads of several tasks may count differently,
    because each batch gives gradients to one of them. If you drop the moments on purpose, for example after weights
    were loaded or averaged, say so with an `--ignore`.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html
    """

    def judge(self, fact: StateCounted) -> Verdict:
        if not fact.emptied:
            return HELD
        return Found(
            expected=f"moments from {fact.before:.0f} updates",
            observed="the optimizer's state was emptied during training",
        )
