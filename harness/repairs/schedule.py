"""Schedules: stepped after the update, as often as they were made for."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.loop import (
    epoch_loops,
    is_optimizer,
    is_scheduler_step,
    optimizer_steps,
    optimizers,
    times,
    window_sizes,
)
from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import LOOPS, Source, argument, called, dotted, looks_like, targets, with_argument

LENGTHS = ("num_training_steps", "total_steps", "T_max", "total_iters")


@repairs("schedule::stepped-before-update")
def stepped_before_update(fault: RepairTarget) -> Iterator[cst.Module]:
    """Step it after the optimizer, or after the loop beside it in which the optimizer steps."""
    source = fault.source
    for call in _scheduler_steps(source):
        for step in optimizer_steps(source, source.scope(call)):
            if source.first(step.call) > source.first(call):
                loop = next((each for each in source.enclosing(step.call, LOOPS) if source.beside(each, call)), None)
                yield source.moved(source.statement_of(call), after=loop or source.statement_of(step.call))


@repairs("schedule::stepped-in-wrong-unit", quiets=("schedule::may-be-too-long", "schedule::warmup-never-ends"))
def stepped_in_wrong_unit(fault: RepairTarget) -> Iterator[cst.Module]:
    """Step it after each update instead of after each epoch, or the other way round."""
    source = fault.source
    steps = _scheduler_steps(source)
    for call in steps:
        statement, loops = source.statement_of(call), source.enclosing(call, LOOPS)
        updates = optimizer_steps(source, source.scope(call))
        beside = any(source.beside(call, step.call) for step in updates)
        if len(loops) > 1 or (loops and beside and isinstance(source.scope(call), cst.FunctionDef)):
            yield source.moved(statement, after=loops[0])  # of a function, which the loop over epochs calls
        for step in updates:
            if not source.beside(call, step.call):
                yield source.moved(statement, after=source.statement_of(step.call))


@repairs("schedule::never-stepped")
def never_stepped(fault: RepairTarget) -> Iterator[cst.Module]:
    """Step it after each update, or after a loop around them."""
    source = fault.source
    for name in [each for each in targets(fault.statement) if each]:
        for step in optimizer_steps(source, source.module):
            if _reads(source.scope(step.call), fault, name):
                yield source.inserted(f"{name}.step()", after=source.statement_of(step.call))
                loops = source.enclosing(step.call, LOOPS)
                yield from (source.inserted(f"{name}.step()", after=loop) for loop in loops[:-1])


def _scheduler_steps(source: Source) -> list[cst.Call]:
    return [call for call in source.calls(source.module, "step") if is_scheduler_step(source, call)]


def _reads(scope: cst.FunctionDef | cst.Module, fault: RepairTarget, name: str) -> bool:
    """Whether a function can know a variable that the finding's statement makes."""
    if scope is fault.scope or isinstance(fault.scope, cst.Module) or name.startswith("self."):
        return True
    return isinstance(scope, cst.FunctionDef) and name in {each.name.value for each in scope.params.params}


@repairs("schedule::warmup-never-ends")
def warmup_never_ends(fault: RepairTarget) -> Iterator[cst.Module]:
    """Exchange the steps of the warmup and those in all."""
    source = fault.source
    for call in source.calls(fault.statement):
        warmup = argument(call, "num_warmup_steps", 1)
        steps = argument(call, "num_training_steps", 2)
        if looks_like(called(call), "warmup|scheduler") and warmup is not None and steps is not None:
            values = {warmup.value: steps.value, steps.value: warmup.value}
            yield source.exchanged(values)


@repairs("schedule::drives-another-optimizer")
def drives_another_optimizer(fault: RepairTarget) -> Iterator[cst.Module]:
    """Make it for the optimizer that makes the updates, after that."""
    source, statement = fault.source, fault.statement
    names = [*optimizers(source), *(each.optimizer for each in optimizer_steps(source, source.module))]
    for other in reversed(source.all(fault.scope, cst.Assign)):
        later = source.first(other) > source.last(statement)
        read = {each.value for each in source.all(statement, cst.Name)}
        if later and read & set(targets(other)) & set(names) and source.beside(other, statement):
            yield source.moved(statement, after=other)
    for call in source.calls(statement)[:1]:
        given = argument(call, "optimizer", 0)
        if given is not None and (isinstance(given.value, cst.Call) or is_optimizer(source, dotted(given.value))):
            for name in dict.fromkeys(names):
                yield source.replaced(given.value, name)


@repairs("schedule::plateau-wrong-mode")
def plateau_wrong_mode(fault: RepairTarget) -> Iterator[cst.Module]:
    """Say which way the metric is to go."""
    source = fault.source
    for call in source.calls(fault.statement, "ReduceLROnPlateau"):
        mode = fault.details.get("mode", "max")
        given = argument(call, "mode", 1)
        if given is not None:
            yield source.replaced(given.value, f'"{mode}"')
        else:
            yield source.exchanged({call: with_argument(call, "mode", f'"{mode}"')})


@repairs("schedule::lr-zero")
def lr_zero(fault: RepairTarget) -> Iterator[cst.Module]:
    """Divide without rounding down."""
    source = fault.source
    for call in source.calls(source.module, "LambdaLR"):
        for operation in source.all(call, cst.BinaryOperation):
            if isinstance(operation.operator, cst.FloorDivide):
                division = cst.Divide(operation.operator.whitespace_before, operation.operator.whitespace_after)
                yield source.exchanged({operation.operator: division})


@repairs("schedule::wrong-length")
def wrong_length(fault: RepairTarget) -> Iterator[cst.Module]:
    """Make it for all epochs, and for updates instead of micro-batches, where the script says what it is made for.

    Where it does not, the loop may be what is wrong; a longer schedule would be as quiet.
    """
    source = fault.source
    lengths = [found for call in source.calls(fault.statement) for name in LENGTHS if (found := argument(call, name))]
    for length in lengths[:1]:
        made_for = _definition(source, length.value)
        if isinstance(made_for, cst.Call) and called(made_for) == "len" and fault.case == "too-short":
            for loop in epoch_loops(source):
                yield source.replaced(length.value, f"{times(source, loop)} * {source.code(length.value)}")
        product = isinstance(made_for, cst.BinaryOperation) and isinstance(made_for.operator, cst.Multiply)
        if product and fault.case == "too-long":
            for call in source.calls(source.module, "backward"):
                for size in window_sizes(source, call):
                    yield source.replaced(length.value, f"{source.code(length.value)} // {size}")


def _definition(source: Source, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What an expression is, or what the one statement that assigns it says."""
    if not (name := dotted(value)):
        return value
    values = [each.value for each in source.all(source.module, cst.Assign) if name in targets(each)]
    return values[0] if len(values) == 1 else None
