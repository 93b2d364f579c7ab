"""Memory: what is kept of a loss is its number."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import Source, dotted, looks_like, receiver, targets


@repairs("memory::graphs-kept", quiets=("loss::term-always-zero",))
def graphs_kept(fault: RepairTarget) -> Iterator[cst.Module]:
    """Keep ``loss.item()``, or ``loss.detach()`` where a tensor is wanted."""
    source = fault.source
    losses = {name for name in targets(fault.statement) if name}
    losses |= {dotted(receiver(call)) for call in source.calls(fault.scope, "backward")} - {""}
    kept = [node for node in _kept(source, fault.scope) if dotted(node) in losses or _is_loss(node)]
    for method in ("item", "detach"):
        for node in kept:
            yield source.replaced(node, f"{source.code(node)}.{method}()")


def _is_loss(node: cst.BaseExpression) -> bool:
    return looks_like(dotted(node), r"(^|\.)loss$")


def _kept(source: Source, scope: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What is added to a sum, or put into a list or a dictionary."""
    for augmented in source.all(scope, cst.AugAssign):
        yield augmented.value
    for call in source.calls(scope, "append"):
        for arg in call.args:
            yield arg.value
            yield from (each.value for each in source.all(arg, cst.DictElement))
            yield from (each.value for each in source.all(arg, cst.Element))
    for assign in source.all(scope, cst.Assign):
        if isinstance(assign.targets[0].target, cst.Subscript):
            yield assign.value
        elif isinstance(total := assign.value, cst.BinaryOperation) and dotted(total.left) in targets(assign):
            yield total.right
