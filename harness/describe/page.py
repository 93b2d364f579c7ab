"""The page: a script run under watch, and what it did as lines in causal order."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from harness.describe.data import Loaders, Rows
from harness.describe.lines import Line, Section
from harness.describe.models import Models
from harness.describe.results import Metrics, Randomness, Saves
from harness.describe.taught import Losses, Taught
from harness.describe.updates import Optimizers
from harness.errors import CannotTry
from harness.findings import Finding, Report

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor
    from harness.watch.session import Session

SECTIONS: tuple[Callable[[Monitor], Section], ...] = (
    Loaders,
    Rows,
    Taught,
    Losses,
    Models,
    Optimizers,
    Metrics,
    Saves,
    Randomness,
)

ORDER = (
    "data",
    "taught",
    "loss",
    "model",
    "optimizer",
    "schedule",
    "update",
    "evaluation",
    "metric",
    "saved",
    "randomness",
    "checks",
)
"""The sections of a page: what comes first is the cause of what comes after it."""


@dataclass
class Description(Report):
    """What a run did."""

    kind: ClassVar[str] = "description"
    script: str
    updates: int = 0
    lines: list[Line] = field(default_factory=list)
    """In causal order. Those without text say what a baseline keeps."""
    numbers: dict[str, list[float]] = field(default_factory=dict)
    """Losses and norms of the first updates and the last, and metrics, by key."""
    findings: list[Finding] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shortened: bool = False
    """Whether passes over DataLoaders were, so that counts are of what was left of them."""
    crashed: str | None = None
    seconds: float = 0.0

    @property
    def facts(self) -> dict[str, Any]:
        """What the run did, by key."""
        return {key: value for each in self.lines for key, value in each.facts.items()}


def lines_of(threads: Session) -> Iterator[Line]:
    """What the loops of a session did, in causal order; the loops of several threads one after the other."""
    for number, monitor in enumerate([each for each in threads.monitors if each.models or each.passes], start=1):
        found = [each for section in sections_of(monitor) for each in section.lines()]
        for each in sorted(found, key=lambda line: ORDER.index(line.section)):
            facts = each.facts if number == 1 else {f"loop{number}.{key}": value for key, value in each.facts.items()}
            yield Line(each.section, each.text, facts, each.where)


def sections_of(monitor: Monitor) -> list[Section]:
    """Those that have not failed."""
    return [each for each in monitor.sections if isinstance(each, Section) and not monitor.bus.has_left_out(each)]


def describe(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    updates: int | None = None,
    full: bool = False,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    reload: bool = True,
) -> Description:
    """Run ``script`` with ``arguments``, watched, and say what it did.

    Unless ``full``, long passes over a DataLoader are shortened, as :func:`harness.watch.script.check_script` does.

    Raises:
        CannotTry: there is no such script, it is not Python, or it calls no model in this process.
    """
    from harness.watch.script import watch_script

    begun = time.perf_counter()
    report, threads = watch_script(
        script,
        arguments,
        module=module,
        updates=updates,
        full=full,
        select=select,
        ignore=ignore,
        reload=reload,
        sections=SECTIONS,
    )
    found = Description(script, report.updates, list(lines_of(threads)))
    found.numbers = {k: v for each in threads.monitors for s in sections_of(each) for k, v in s.numbers().items()}
    found.findings, found.held, found.shortened = report.findings, report.held, report.shortened
    failed = [type(each).__name__ for m in threads.monitors for each in m.sections if m.bus.has_left_out(each)]
    found.notes = [*report.notes, *(f"what the section {each} tells is not known: it failed itself" for each in failed)]
    found.crashed, found.seconds = report.crashed, time.perf_counter() - begun
    if not found.lines and found.crashed is None:
        raise CannotTry(f"{script} called no model in this process, so there is nothing to describe")
    return found
