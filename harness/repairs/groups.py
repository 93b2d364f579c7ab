"""Parameter groups: keys that the optimizer knows."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import Source


@repairs("groups::unknown-key")
def unknown_key(fault: RepairTarget) -> Iterator[cst.Module]:
    """Write the key as the optimizer has it, in all groups of the list."""
    source = fault.source
    wrong, right = (fault.details.get(each) for each in ("key", "meant"))
    if wrong is None or right is None:
        return
    keys = [
        each.key
        for group in source.all(source.module, cst.Dict)
        if "params" in _keys(group)
        for each in group.elements
        if isinstance(each, cst.DictElement) and _text(each.key) == wrong
    ]
    if len({source.statement_of(each) for each in keys}) == 1:
        yield _spelled(source, keys, right)


def _spelled(source: Source, keys: list[cst.BaseExpression], name: str) -> cst.Module:
    def change(node: cst.SimpleString) -> cst.SimpleString:
        return node.with_changes(value=f"{node.prefix}{node.quote}{name}{node.quote}")

    return source.edited({key: [change] for key in keys})


def _keys(group: cst.Dict) -> list[str]:
    return [_text(each.key) for each in group.elements if isinstance(each, cst.DictElement)]


def _text(node: cst.BaseExpression) -> str:
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else ""
