"""The repairs by the check whose fault they mend."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.findings import PLACE, Finding

if TYPE_CHECKING:
    import libcst as cst

    from harness.repairs.source import Source, Statement

FAMILIES = (
    *("gradients", "groups", "inputs", "loss", "memory", "metrics", "mode", "model", "optimizer", "parameters"),
    *("rows", "saved", "schedule", "update", "weights"),
)

MOST_TRIES = 6
"""Edits that are tried for a finding; each is another run of the script."""


class RepairTarget:
    """A finding, and the statement of the source that it points at."""

    def __init__(self, source: Source, finding: Finding) -> None:
        place = PLACE.fullmatch(finding.where or "")
        self.source, self.finding = source, finding
        self.line = int(place["line"]) if place else 0
        self.details = finding.details
        """What its check says of it, by name."""
        self.case = finding.details.get("case")
        """Case in which its check found it, where that matters to a repair."""

    @property
    def statement(self) -> Statement:
        """
        Raises:
            NoStatement: there is none at its line.
        """
        found = self.source.statement(self.line)
        if found is None:
            raise NoStatement
        return found

    @property
    def scope(self) -> cst.FunctionDef | cst.Module:
        """The function of that statement, or the module."""
        return self.source.scope(self.statement)


class NoStatement(Exception):
    """A finding points at no statement."""


Edits = Callable[[RepairTarget], "Iterator[cst.Module]"]
"""Yields edits that might mend a fault, the likeliest first, each in one place."""


@dataclass(frozen=True)
class Repair:
    """What is known of how the fault of a check is mended."""

    edits: Edits
    quiets: tuple[str, ...] = ()
    """Checks that look at the faulty loop alone, and have nothing to look at in the right one."""


_repairs: dict[str, Repair] = {}


def repairs(check: str, *, quiets: tuple[str, ...] = ()) -> Callable[[Edits], Edits]:
    """Register a function as the repair of a check's fault."""

    def register(edits: Edits) -> Edits:
        _repairs[check] = Repair(edits, quiets)
        return edits

    return register


def all_repairs() -> dict[str, Repair]:
    """Every repair by the id of its check."""
    for family in FAMILIES:
        importlib.import_module(f"harness.repairs.{family}")
    return dict(sorted(_repairs.items()))


def candidates(data: bytes, finding: Finding) -> Iterator[bytes]:
    """A file with each edit that might mend what was found in it, as often as one may be tried."""
    import libcst as cst

    from harness.repairs.source import DoesNotFit, Source

    repair = all_repairs().get(finding.check)
    if repair is None:
        return
    seen = {data}
    try:
        for module in repair.edits(RepairTarget(Source(data), finding)):
            edited = module.bytes
            if edited in seen:
                continue
            seen.add(edited)
            if len(seen) > MOST_TRIES + 1:
                return
            if _is_python(edited):
                yield edited
    except (cst.ParserSyntaxError, SyntaxError, NoStatement, DoesNotFit):
        return


def _is_python(data: bytes) -> bool:
    try:
        compile(data, "patched", "exec")
    except (SyntaxError, ValueError):
        return False
    return True
