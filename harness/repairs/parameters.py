"""Parameters: those that are to be trained change by their optimizer's steps, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.loop import optimizers, trains
from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import LOOPS, argument, without_argument


@repairs("parameters::frozen-changed")
def frozen_changed(fault: RepairTarget) -> Iterator[cst.Module]:
    """Leave no gradients of zero behind."""
    source = fault.source
    for call in source.calls(source.module, "zero_grad"):
        if argument(call, "set_to_none") is not None:
            yield source.exchanged({call: without_argument(call, "set_to_none")})


@repairs("parameters::freezes-nothing")
def freezes_nothing(fault: RepairTarget) -> Iterator[cst.Module]:
    """Freeze by the method."""
    source = fault.source
    for assign in source.all(source.module, cst.Assign):
        target = assign.targets[0].target
        if isinstance(target, cst.Attribute) and target.attr.value == "requires_grad" and len(assign.targets) == 1:
            call = source.expression(f"{source.code(target.value)}.requires_grad_({source.code(assign.value)})")
            yield source.exchanged({assign: cst.Expr(call, semicolon=assign.semicolon)})


@repairs("optimizer::never-steps")
def never_steps(fault: RepairTarget) -> Iterator[cst.Module]:
    """Make a step after the backward pass, and after what clips its gradients."""
    source = fault.source
    if fault.case != "no-step":
        return
    for call in source.calls(source.module, "backward"):
        statement = source.statement_of(call)
        siblings = list(source.siblings(statement))
        following = siblings[siblings.index(source.unit(statement)[0]) + 1 :]
        after = next(
            (each for each in following if source.calls(each, "clip_grad_norm_", "clip_grad_value_")), statement
        )
        for name in dict.fromkeys(optimizers(source)):
            yield source.inserted(f"{name}.step()", after=after)


@repairs("parameters::reset")
def reset(fault: RepairTarget) -> Iterator[cst.Module]:
    """Set the weights once, before the loops."""
    source = fault.source
    for loop in source.all(source.module, cst.For):
        if not trains(source, loop) or source.enclosing(loop, LOOPS):
            continue
        for body in [loop, *source.all(loop.body, cst.For)]:
            for statement in source.body(body):
                if (
                    not trains(source, statement)
                    and not isinstance(statement, cst.For)
                    and _sets_weights(fault, statement)
                ):
                    yield source.moved(statement, before=loop)


def _sets_weights(fault: RepairTarget, statement: cst.CSTNode) -> bool:
    """Whether it is a call alone, or a block that copies."""
    source = fault.source
    if isinstance(statement, cst.With):
        return bool(source.calls(statement, "copy_", "load_state_dict", "fill_"))
    names = ("eval", "train", "zero_grad", "print", "append", "update", "step", "write")
    calls = source.calls(statement)
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and len(calls) > 0
        and not source.calls(statement, *names)
    )
