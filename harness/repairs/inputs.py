"""Inputs: the rows and labels that a loop is given are those that it uses."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.names import rebound
from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import argument


@repairs("inputs::stale-batch")
def stale_batch(fault: RepairTarget) -> Iterator[cst.Module]:
    """Give the loop's batch the name by which its body knows it."""
    source = fault.source
    for loop in source.enclosing(fault.statement, cst.For)[:1]:
        yield from rebound(source, loop)


@repairs("inputs::labels-shifted-twice")
def labels_shifted_twice(fault: RepairTarget) -> Iterator[cst.Module]:
    """Give the model the whole of what one call shifts by a place."""
    source = fault.source
    for call in source.calls(fault.statement):
        labels, ids = argument(call, "labels"), argument(call, "input_ids", 0)
        if labels is None or ids is None:
            continue
        whole = [each.value for each in (ids, labels) if isinstance(each.value, cst.Subscript)]
        if len({source.code(each.value) for each in whole}) == 1 and len(whole) == 2:
            yield source.exchanged({each: each.value for each in whole})
