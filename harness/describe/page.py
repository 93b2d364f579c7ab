"""The page: a script run under watch, and what it did as lines in causal order."""

from __future__ import annotations

import os
import re
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from harness import launch
from harness.describe.data import Loaders, Rows
from harness.describe.lines import Line, Section
from harness.describe.models import Models
from harness.describe.results import Loads, Metrics, Randomness, Saves
from harness.describe.taught import Losses, Taught
from harness.describe.updates import Optimizers
from harness.errors import CannotTry
from harness.findings import Finding, Isolation, Report, strict
from harness.settings import DEFAULTS, WatchOptions

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor
    from harness.watch.script import CheckReport
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
    Loads,
    Randomness,
)

ORDER = (
    "data",
    "taught",
    "loss",
    "model",
    "loaded",
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

FEWEST_ALIKE = 3
"""Lines that are alike but for the numbers of what they are about, from which on they are one."""

WIDTH, INDENT = 120, 12
"""Characters of a line on a terminal, and those before what a section says."""


@dataclass
class Description(Report):
    """What a run did."""

    kind: ClassVar[str] = "description"
    script: str
    updates: int = 0
    lines: list[Line] = field(default_factory=list)
    """Lines in causal order. Those without text say what a baseline keeps."""
    numbers: dict[str, list[float]] = field(default_factory=dict)
    """Losses and norms of the first updates and the last, and metrics, by key."""
    findings: list[Finding] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shortened: bool = False
    """Whether passes over DataLoaders were, so that counts are of what was left of them."""
    crashed: str | None = None
    seconds: float = 0.0
    isolation: Isolation | None = None
    """What became of the user's files; None where whoever runs the script sees to them."""

    def __str__(self) -> str:
        return "\n".join(self.text())

    def text(self) -> Iterator[str]:
        """The page as a terminal shows it: each section by its name, the user's own line behind what it did."""
        if self.crashed is not None:
            yield f"{self.script} ended early ({self.crashed.splitlines()[-1]}): this is what it did until then"
        for section, lines in groupby((each for each in self.lines if each.text), key=lambda line: line.section):
            name, before = section, None
            for each in _put_together(lines):
                place = f" ({self._place(each.where)})" if each.where and each.where != before else ""
                before = each.where
                yield from textwrap.wrap(
                    each.text + place,
                    WIDTH,
                    initial_indent=f"{name:<{INDENT}}",
                    subsequent_indent=" " * (INDENT + 2),
                    break_on_hyphens=False,
                )
                name = ""
        found = [
            each.check + (f" (may follow from {each.explained_by})" if each.explained_by else "")
            for each in self.findings
        ]
        said = f"{len(self.held)} held, " + (f"found: {', '.join(found)}" if found else "none found anything")
        if self.held or found:
            yield f"{'checks':<{INDENT}}{said}"
        if self.shortened:
            yield "Long passes over a DataLoader were shortened: counts are of what was left. --full goes through all."
        yield from (f"note: {note}" for note in self.notes)

    def _place(self, where: str) -> str:
        """A line of the script without its folder: most lines are of one file."""
        file, _, line = where.rpartition(":")
        module = f"{self.script.replace('.', os.sep)}.py"
        scripts = {os.path.abspath(each) for each in (self.script, module)}
        return f"{os.path.basename(file)}:{line}" if os.path.abspath(file) in scripts else where

    def as_dict(self) -> dict[str, Any]:
        return strict(super().as_dict())

    @property
    def facts(self) -> dict[str, Any]:
        """What the run did, by key."""
        return {key: value for each in self.lines for key, value in each.facts.items()}


def _put_together(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines that differ in the numbers of what they are about alone, as those of folds do, as one."""
    alike: dict[tuple[str, str | None], list[Line]] = {}
    for each in lines:
        alike.setdefault((re.sub(r"#\d+", "", each.text), each.where), []).append(each)
    for (text, where), of_it in alike.items():
        few = len(of_it) < FEWEST_ALIKE
        yield from of_it if few else [Line(of_it[0].section, f"{text} ({len(of_it)} alike)", {}, where)]


@contextmanager
def describing() -> Iterator[Description]:
    """Describe the training in the block: in a notebook, or in a test::

        with describing() as did:
            trainer.train()

        print(did)
        assert did.facts["update.AdamW.steps"] == 120

    Raises:
        CannotTry: nothing in the block called a model.
    """
    from harness.watch.instrument import instrumented
    from harness.watch.locate import Locator
    from harness.watch.monitor import Options
    from harness.watch.session import Session

    found, begun = Description("the block"), time.perf_counter()
    threads = Session(Options(every=1, sections=SECTIONS), Locator())
    with instrumented(threads):
        yield found
    threads.ends()
    _fill(found, threads)
    found.seconds = time.perf_counter() - begun
    if not found.lines:
        raise CannotTry("no model was called in the block, so there is nothing to describe")


def _fill(found: Description, threads: Session) -> None:
    found.updates, found.lines = threads.updates_made, list(lines_of(threads))
    found.numbers = {k: v for each in threads.monitors for s in sections_of(each) for k, v in s.numbers().items()}
    failed = [type(each).__name__ for m in threads.monitors for each in m.sections if m.bus.has_left_out(each)]
    if (ranks := launch.world_size() or 1) > 1:
        found.notes.append(f"this is what the first of {ranks} processes did")
    found.notes += [f"what the section {each} tells is not known: it failed itself" for each in failed]


def lines_of(threads: Session) -> Iterator[Line]:
    """What the loops of a session did, in causal order; the loops of several threads one after the other."""
    for number, monitor in enumerate([each for each in threads.monitors if each.models or each.updates_made], start=1):
        found = [each for section in sections_of(monitor) for each in section.lines()]
        for each in sorted(found, key=lambda line: ORDER.index(line.section)):
            facts = each.facts if number == 1 else {f"loop{number}.{key}": value for key, value in each.facts.items()}
            yield Line(each.section, each.text, facts, each.where)


def sections_of(monitor: Monitor) -> list[Section]:
    """Sections that have not failed."""
    return [each for each in monitor.sections if isinstance(each, Section) and not monitor.bus.has_left_out(each)]


def describe(
    script: str,
    arguments: Sequence[str] = (),
    options: WatchOptions = DEFAULTS,
    *,
    leaving: Callable[[Callable[[], Description]], int] | None = None,
) -> Description:
    """Run ``script`` with ``arguments``, watched, and say what it did.

    Raises:
        CannotTry: there is no such script, it is not Python, or it calls no model in this process.
    """
    from harness.watch.script import watch_script

    begun = time.perf_counter()

    def described(report: CheckReport, threads: Session) -> Description:
        found = Description(script, notes=list(report.notes))
        _fill(found, threads)
        found.findings, found.held, found.shortened = report.findings, report.held, report.shortened
        found.crashed, found.seconds = report.crashed, time.perf_counter() - begun
        if not found.lines and found.crashed is None:
            raise CannotTry(f"{script} called no model in this process, so there is nothing to describe")
        return found

    with_page = None if leaving is None else lambda outcome: leaving(lambda: described(*outcome()))
    return described(*watch_script(script, arguments, options, leaving=with_page, sections=SECTIONS, every_update=True))
