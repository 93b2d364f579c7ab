"""Metrics: of predictions and references of one shape, each row once."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.loss import squeezed
from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import LOOPS, Source, argument, targets


@repairs("metrics::broadcast")
def broadcast(fault: RepairTarget) -> Iterator[cst.Module]:
    """Take the last dimension, of size 1, from the predictions, or from the labels."""
    source = fault.source
    for comparison in source.all(fault.statement, cst.Comparison):
        if isinstance(comparison.comparisons[0].operator, cst.Equal | cst.NotEqual):
            yield from squeezed(source, [comparison.left, comparison.comparisons[0].comparator])
    for call in source.calls(fault.statement, "eq", "ne"):
        if isinstance(call.func, cst.Attribute) and call.args:
            yield from squeezed(source, [call.func.value, call.args[-1].value])


@repairs("metrics::wrong-predictions")
def wrong_predictions(fault: RepairTarget) -> Iterator[cst.Module]:
    """Take the likeliest class, over the last dimension."""
    source = fault.source
    for call in source.calls(source.module, "argmin"):
        yield source.called_otherwise(call, "argmax")
    for call in source.calls(source.module, "argmax"):
        for arg in (argument(call, "dim"), argument(call, "axis"), *call.args[-1:]):
            if arg is not None and source.code(arg.value) in ("0", "-2"):
                yield source.replaced(arg.value, "-1")


@repairs("metrics::rows-missing-or-repeated")
def rows_missing_or_repeated(fault: RepairTarget) -> Iterator[cst.Module]:
    """Begin with empty lists, or a new metric, in each evaluation; add each batch in the loop."""
    source, statement = fault.source, fault.statement
    read = {each.value for each in source.all(statement, cst.Name)}
    for loop in source.enclosing(statement, LOOPS):
        empty = [
            each for each in _siblings_before(source, loop) if read & set(targets(each)) and _is_empty(source, each)
        ]
        if empty:
            names = [name for each in empty for name in targets(each)]
            yield source.moved(*empty, before=_first_use(source, loop, names))
    for above in _siblings_before(source, statement)[-1:]:
        if isinstance(above, cst.For) and source.calls(statement, "add_batch", "add", "update"):
            yield source.moved(statement, after=source.body(above)[-1])


def _siblings_before(source: Source, node: cst.CSTNode) -> list[cst.CSTNode]:
    siblings = list(source.siblings(node))
    before = siblings[: siblings.index(source.unit(node)[0])]
    return [
        each.body[0] if isinstance(each, cst.SimpleStatementLine) and len(each.body) == 1 else each for each in before
    ]


def _is_empty(source: Source, assign: cst.CSTNode) -> bool:
    """Whether nothing is in what it makes: [], [], 0, or list()."""
    if not isinstance(assign, cst.Assign):
        return False
    value = assign.value
    values = [each.value for each in value.elements] if isinstance(value, cst.Tuple) else [value]
    return all(source.code(each) in ("[]", "0", "0.0", "list()") for each in values)


def _first_use(source: Source, loop: cst.CSTNode, names: list[str]) -> cst.CSTNode:
    """The first statement of a loop's block that reads or writes one of the names."""
    for statement in source.body(loop):
        if any(name.value in names for name in source.all(statement, cst.Name)):
            return statement
    return source.body(loop)[0]
