"""Gradients: cleared, clipped, scaled and used in the right place."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.loop import StepCall, optimizer_steps, scaler_of, window_sizes, windows
from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import LOOPS, Source, called, dotted, receiver


@repairs("gradients::not-cleared")
def not_cleared(fault: RepairTarget) -> Iterator[cst.Module]:
    """Clear them after the step."""
    source = fault.source
    for step in optimizer_steps(source, fault.statement):
        yield source.inserted(f"{step.optimizer}.zero_grad()", after=fault.statement)


@repairs("gradients::lost")
def lost(fault: RepairTarget) -> Iterator[cst.Module]:
    """Make a step for the last window; go backward before the step of the same block; clear them after the step of
    their loop instead of before it.

    What is cleared once an epoch is not moved: what the epoch's end leaves over would go into the next one.
    """
    source, statement = fault.source, fault.statement
    yield from _last_window(fault)
    if fault.case == "step-before-backward":
        yield from _backward_before_step(fault)
        return
    if source.calls(statement, "zero_grad") and isinstance(statement, cst.Expr):
        for step in optimizer_steps(source, fault.scope):
            later = source.first(step.call) > fault.line
            if later and source.enclosing(step.call, LOOPS) == source.enclosing(statement, LOOPS):
                yield source.moved(statement, after=source.statement_of(step.call))


def _backward_before_step(fault: RepairTarget) -> Iterator[cst.Module]:
    source = fault.source
    for step in optimizer_steps(source, fault.scope):
        made = source.statement_of(step.call)
        beside = [source.unit(call)[0] for call in source.calls(fault.scope, "backward") if source.beside(call, made)]
        if len(beside) == 1 and source.first(beside[0]) > source.first(made):
            yield source.moved(beside[0], before=made)


@repairs("gradients::left-over")
def left_over(fault: RepairTarget) -> Iterator[cst.Module]:
    """Make a step for the last window; count the batches from 1."""
    yield from _last_window(fault)


def _last_window(fault: RepairTarget) -> Iterator[cst.Module]:
    source = fault.source
    for window in windows(source, fault.scope):
        at_end = f"{window.counted.made} == len({window.counted.loader})"
        test = source.code(window.condition.test)
        if window.is_full(source):
            yield source.replaced(window.condition.test, f"{test} or {at_end}")
        elif isinstance(window.condition.test, cst.Comparison):
            made = window.counted.made if window.counted.made.isidentifier() else f"({window.counted.made})"
            yield source.replaced(window.condition.test, f"{made} % {window.size} == 0 or {at_end}")


@repairs("gradients::accumulation-unscaled")
def accumulation_unscaled(fault: RepairTarget) -> Iterator[cst.Module]:
    """Divide the loss by the number of micro-batches where it goes backward."""
    source = fault.source
    for call in source.calls(fault.statement, "backward"):
        for size in window_sizes(source, call):
            if call.args and not isinstance(receiver(call), cst.Call):  # accelerator.backward(loss)
                loss = call.args[0].value
                if called_on_a_loss(call):
                    continue
            else:
                loss = _innermost_loss(call)
            yield source.replaced(loss, _divided(source.code(loss), size, bare=loss is not receiver(call)))


def called_on_a_loss(call: cst.Call) -> bool:
    """Whether the arguments of ``backward`` are its own: retain_graph, gradient."""
    return any(each.keyword is not None for each in call.args)


def _innermost_loss(call: cst.Call) -> cst.BaseExpression:
    """The loss of ``loss.backward()`` and of ``scaler.scale(loss).backward()``."""
    loss = receiver(call)
    assert loss is not None
    if isinstance(loss, cst.Call) and called(loss) == "scale" and loss.args:
        return loss.args[0].value
    return loss


def _divided(loss: str, size: str, *, bare: bool) -> str:
    quotient = f"{loss} / {size}" if size.replace(".", "_").isidentifier() or size.isdigit() else f"{loss} / ({size})"
    return quotient if bare else f"({quotient})"


@repairs("gradients::clipped-while-scaled")
def clipped_while_scaled(fault: RepairTarget) -> Iterator[cst.Module]:
    """Unscale before it clips."""
    for step in optimizer_steps(fault.source, fault.scope):
        if (scaler := scaler_of(step.call)) is not None:
            yield fault.source.inserted(f"{scaler}.unscale_({step.optimizer})", before=fault.statement)


@repairs("gradients::clipped-in-part")
@repairs("gradients::misplaced-clipping")
def misplaced_clipping(fault: RepairTarget) -> Iterator[cst.Module]:
    """Clip right before the step."""
    source, clip = fault.source, fault.statement
    steps = optimizer_steps(source, fault.scope)
    alone = next(iter(source.enclosing(clip, cst.If)), None)
    if (
        alone is not None
        and alone.orelse is None
        and len(source.body(alone)) == 1
        and source.statement_of(alone) is alone
    ):
        yield from _moved_before(source, alone, steps)
    yield from _moved_before(source, clip, steps)


def _moved_before(source: Source, clip: cst.CSTNode, steps: list[StepCall]) -> Iterator[cst.Module]:
    for step in steps:
        statement = source.statement_of(step.call)
        if clip not in source.above(statement):
            yield source.moved(clip, before=statement)


@repairs("gradients::not-scaled")
def not_scaled(fault: RepairTarget) -> Iterator[cst.Module]:
    """Let the scaled loss go backward."""
    source, statement = fault.source, fault.statement
    for scaler in _scalers(source)[:1]:
        for call in source.calls(statement, "backward"):
            loss = receiver(call)
            assert loss is not None
            scaled = f"{scaler}.scale({source.code(loss)})"
            changes = source.exchange({loss: source.expression(scaled)})
            if (useless := _right_before(source, statement)) is not None and source.code(useless).strip() == scaled:
                changes |= source.removal(useless)
            yield source.edited(changes)


@repairs("gradients::not-unscaled")
def not_unscaled(fault: RepairTarget) -> Iterator[cst.Module]:
    """Let the scaler make the step."""
    source, statement = fault.source, fault.statement
    for scaler in _scalers(source)[:1]:
        for step in optimizer_steps(source, statement):
            if scaler_of(step.call) is None:
                changes = source.exchange({step.call: source.expression(f"{scaler}.step({step.optimizer})")})
                if f"{scaler}.update" not in [source.code(each.func) for each in source.calls(source.module, "update")]:
                    changes |= source.insertion(f"{scaler}.update()", after=statement)
                yield source.edited(changes)


def _scalers(source: Source) -> list[str]:
    """Variables of which a loss is scaled."""
    names = [dotted(receiver(each)) for each in source.calls(source.module, "scale")]
    return [name for name in dict.fromkeys(names) if name]


def _right_before(source: Source, statement: cst.CSTNode) -> cst.CSTNode | None:
    siblings = list(source.siblings(statement))
    at = siblings.index(source.unit(statement)[0])
    return siblings[at - 1] if at else None
