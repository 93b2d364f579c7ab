"""Weights: no unit like another, and states that are copies."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import Source, dotted, receiver


@repairs("weights::units-alike")
def units_alike(fault: RepairTarget) -> Iterator[cst.Module]:
    """Draw the weights at random."""
    source = fault.source
    for call in source.calls(source.module, "constant_", "zeros_", "ones_"):
        of = call.args[0].value if call.args else None
        if isinstance(call.func, cst.Attribute) and isinstance(of, cst.Attribute) and of.attr.value == "weight":
            initialised = f"{source.code(call.func.value)}.xavier_uniform_({source.code(of)})"
            yield source.replaced(call, initialised)


@repairs("weights::state-kept-without-copy")
def state_kept_without_copy(fault: RepairTarget) -> Iterator[cst.Module]:
    """Copy the state where it is kept. Where two models share their parameters, that would hide it."""
    source = fault.source
    if fault.case != "kept":
        return
    for call in source.calls(fault.statement, "state_dict"):
        if receiver(call) is not None and not call.args:
            yield source.replaced(call, _copied(source, source.code(call)))


def _copied(source: Source, state: str) -> str:
    """Copy of a state by the module copy where the script imports it; else tensor by tensor."""
    for statement in source.all(source.module, cst.Import):
        if any(alias.evaluated_name == "copy" and alias.asname is None for alias in statement.names):
            return f"copy.deepcopy({state})"
    for imported in source.all(source.module, cst.ImportFrom):
        names = () if isinstance(imported.names, cst.ImportStar) else imported.names
        if dotted(imported.module) == "copy" and any(
            each.evaluated_name == "deepcopy" and each.asname is None for each in names
        ):
            return f"deepcopy({state})"
    return f"{{name: each.clone() for name, each in {state}.items()}}"
