"""The page: a script run under watch, and what it did as lines in causal order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness import launch
from harness.describe.description import ORDER, Description, Line
from harness.describe.lines import Section
from harness.describe.loaders import Loaders
from harness.describe.models import Models
from harness.describe.results import Loads, Metrics, Randomness, Saves
from harness.describe.rows import Rows
from harness.describe.taught import Losses, Taught
from harness.describe.unusual import rarest, unusual
from harness.describe.updates import Optimizers
from harness.errors import CannotTry
from harness.settings import DEFAULTS, WatchOptions, unless_ignored, wants_unusual

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
    found.unusual = list(unless_ignored(unusual(found.lines)))
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
        for entry in sorted(found, key=lambda line: ORDER.index(line.section)):
            facts = entry.facts if number == 1 else {f"loop{number}.{key}": value for key, value in entry.facts.items()}
            yield Line(entry.section, entry.text, facts, entry.where)


def sections_of(monitor: Monitor) -> list[Section]:
    """Sections that have not failed."""
    return [each for each in monitor.sections if isinstance(each, Section) and not monitor.bus.has_left_out(each)]


def worth_a_look(report: CheckReport, threads: Session) -> None:
    """Add to what the checks found the lines of the page that hardly any correct training has, elsewhere than there."""
    found = {finding.where for finding in report.findings if finding.where is not None}
    try:
        marks = list(unless_ignored(unusual(list(lines_of(threads)))))
    except Exception as error:  # noqa: BLE001 - what is no finding must not cost one
        report.notes.append(f"what is worth a look is not known: {type(error).__name__}: {error}")
        return
    report.unusual = rarest([mark for mark in marks if mark.where not in found])


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
        if wants_unusual(None if options.module else Path(script), options):
            found.unusual = list(unless_ignored(unusual(found.lines)))
        found.findings, found.held, found.shortened = report.findings, report.held, report.shortened
        found.crashed, found.seconds = report.crashed, time.perf_counter() - begun
        if not found.lines and found.crashed is None:
            raise CannotTry(f"{script} called no model in this process, so there is nothing to describe")
        return found

    with_page = None if leaving is None else lambda outcome: leaving(lambda: described(*outcome()))
    return described(*watch_script(script, arguments, options, leaving=with_page, sections=SECTIONS, every_update=True))
