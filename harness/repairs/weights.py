"""Weights: no unit like another."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs


@repairs("weights::units-alike")
def units_alike(fault: RepairTarget) -> Iterator[cst.Module]:
    """Draw the weights at random."""
    source = fault.source
    for call in source.calls(source.module, "constant_", "zeros_", "ones_"):
        of = call.args[0].value if call.args else None
        if isinstance(call.func, cst.Attribute) and isinstance(of, cst.Attribute) and of.attr.value == "weight":
            initialised = f"{source.code(call.func.value)}.xavier_uniform_({source.code(of)})"
            yield source.replaced(call, initialised)
