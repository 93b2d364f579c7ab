"""Names: what a loop binds, and what its body reads."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.source import Source, dotted


def rebound(source: Source, loop: cst.For) -> Iterator[cst.Module]:
    """A loop with one of the names that it binds and never reads exchanged for one that it reads and never binds."""
    names = [each for each in _names(source, loop.target) if each.value != "self"]
    reads = [each.value for each in source.all(loop.body, cst.Name)]
    unread = [each for each in names if each.value not in reads]
    written = {each.value for target in source.all(loop.body, cst.AssignTarget) for each in _names(source, target)}
    before = {
        each.value
        for assign in source.all(source.scope(loop), cst.AssignTarget)
        if source.first(assign) < source.first(loop)
        for each in _names(source, assign)
    } | {
        each.value
        for other in source.all(source.scope(loop), cst.For)
        if source.first(other) < source.first(loop)
        for each in _names(source, other.target)
    }
    called = {dotted(call.func).partition(".")[0] for call in source.calls(loop.body)} - {""}
    for old in unread:
        for new in dict.fromkeys(reads):
            if new in before and new not in written and new not in called and new not in {each.value for each in names}:
                yield source.exchanged({old: old.with_changes(value=new)})


def _names(source: Source, node: cst.CSTNode) -> list[cst.Name]:
    return [each for each in source.all(node, cst.Name) if not isinstance(source.parent(each), cst.Attribute)]
