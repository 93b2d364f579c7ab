"""Updates: downhill."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import Source, dotted, receiver, targets


@repairs("update::ascends")
def ascends(fault: RepairTarget) -> Iterator[cst.Module]:
    """Take away the minus before the loss."""
    source = fault.source
    for call in source.calls(source.module, "backward"):
        loss = receiver(call)
        yield from _turned(source, loss)
        for assign in source.all(source.scope(call), cst.Assign):
            if dotted(loss) and dotted(loss) in targets(assign):
                yield from _turned(source, assign.value)


def _turned(source: Source, value: cst.CSTNode | None) -> Iterator[cst.Module]:
    """Without the minus before it, where it has one."""
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        yield source.replaced(value, source.code(value.expression))
