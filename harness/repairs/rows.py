"""Rows: each once an epoch, in another order each time."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import (
    Source,
    argument,
    called,
    dotted,
    is_true,
    receiver,
    targets,
    with_argument,
    without_argument,
)


# Rows that come in one order look like an evaluation's.
@repairs("rows::same-order-each-epoch", quiets=("rows::evaluation-augmented",))
def same_order_each_epoch(fault: RepairTarget) -> Iterator[cst.Module]:
    """Shuffle where the training's DataLoader is made."""
    source = fault.source
    if fault.details.get("sampler") != "SequentialSampler":
        return
    names = _iterated(source, fault)
    loaders = [call for call in source.calls(source.module, "DataLoader") if argument(call, "sampler") is None]
    for call in sorted(loaders, key=lambda each: not names & set(targets(source.statement_of(each)))):
        if not is_true(argument(call, "shuffle", 2)):
            yield source.exchanged({call: with_argument(call, "shuffle", "True")})


def _iterated(source: Source, fault: RepairTarget) -> set[str]:
    """The names that are read where the finding's loop begins."""
    loops = source.enclosing(fault.statement, cst.For) or [
        each for each in source.all(source.module, cst.For) if source.calls(each, "backward")
    ]
    return {each.value for loop in loops for each in source.all(loop.iter, cst.Name)}


@repairs("rows::evaluation-incomplete")
def evaluation_incomplete(fault: RepairTarget) -> Iterator[cst.Module]:
    """Keep the last batch of the evaluation; leave its loop at its end."""
    source = fault.source
    for call in source.calls(source.module, "DataLoader"):
        shuffle = argument(call, "shuffle", 2)
        if not is_true(argument(call, "drop_last")) or is_true(shuffle):
            continue  # where the rows are shuffled it is meant: for the training
        if shuffle is not None and dotted(shuffle.value) and source.code(shuffle.value) != "False":
            yield source.exchanged({call: with_argument(call, "drop_last", source.code(shuffle.value))})
        else:
            yield source.exchanged({call: without_argument(call, "drop_last")})
    for loop in [each for each in source.all(source.module, cst.For) if not source.calls(each, "backward")]:
        last = source.body(loop)[-1]
        if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[0], cst.Return):
            yield source.moved(last, after=loop)


@repairs("rows::changed-in-place")
def changed_in_place(fault: RepairTarget) -> Iterator[cst.Module]:
    """Make a new tensor of the row."""
    source = fault.source
    for function in source.all(source.module, cst.FunctionDef):
        if function.name.value == "__getitem__":
            for each in source.all(function, cst.AugAssign):
                yield _out_of_place(source, each)
            for call in source.calls(function):
                name = called(call)
                if name.endswith("_") and not name.startswith("_") and receiver(call) is not None:
                    yield from _method_out_of_place(source, call)


def _out_of_place(source: Source, augmented: cst.AugAssign) -> cst.Module:
    target, sign = source.code(augmented.target), source.code(augmented.operator).strip().removesuffix("=")
    value = source.code(augmented.value)
    if isinstance(augmented.value, cst.BinaryOperation | cst.Comparison | cst.BooleanOperation | cst.IfExp):
        value = f"({value})"
    made = source.expression(f"{target} {sign} {value}")
    return source.exchanged({augmented: cst.Assign([cst.AssignTarget(augmented.target)], made, augmented.semicolon)})


def _method_out_of_place(source: Source, call: cst.Call) -> Iterator[cst.Module]:
    """``row.div_(255)`` alone becomes ``row = row.div(255)``."""
    statement = source.statement_of(call)
    of = dotted(receiver(call))
    if isinstance(statement, cst.Expr) and statement.value is call and of and isinstance(call.func, cst.Attribute):
        plain = call.with_changes(func=call.func.with_changes(attr=cst.Name(called(call).removesuffix("_"))))
        target = cst.AssignTarget(source.expression(of))  # type: ignore[arg-type]
        yield source.exchanged({statement: cst.Assign([target], plain, statement.semicolon)})
