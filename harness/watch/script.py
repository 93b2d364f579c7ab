"""Check a user's script: run it under watch, and say what was found."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness import launch
from harness.errors import CannotTry
from harness.files import working_in
from harness.findings import Finding, Isolation, Report, Unusual
from harness.settings import DEFAULTS, WatchOptions, is_ignored_by_comment, wanted
from harness.settings import reload as reload_of
from harness.watch import notebooks
from harness.watch.exchange import of_all_ranks
from harness.watch.running import as_main, readable_script, room_on_the_stack, run_as_main

if TYPE_CHECKING:
    from harness.watch.bus import Listener
    from harness.watch.monitor import Monitor
    from harness.watch.session import Session


PACKAGELESS = "attempted relative import with no known parent package"
"""How Python refuses a module of a package that is started as a script."""


@dataclass(frozen=True)
class NotLookedAt:
    """A check of which nothing can be said, and why."""

    check: str
    why: str


@dataclass(frozen=True)
class NotThere:
    """Checks for which what they judge was not there, and why: "no learning rate scheduler was seen"."""

    why: str
    checks: list[str]


@dataclass(frozen=True)
class Patch:
    """What repairs a finding, shown by running the script again with it; or why there is none."""

    check: str
    file: str | None = None
    diff: str | None = None
    """To the file with the patches before this one."""
    why: str | None = None
    """Why there is none."""
    gone_with: str | None = None
    """The check whose patch, one before this, repairs the finding too."""


@dataclass
class CheckReport(Report):
    """What a script did, and what was found in it."""

    kind: ClassVar[str] = "check"
    script: str
    updates: int = 0
    findings: list[Finding] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Checks that found something and were not wanted."""
    held: list[str] = field(default_factory=list)
    """Checks that looked and found nothing."""
    looked_at: dict[str, str] = field(default_factory=dict)
    """What some of these looked at."""
    did_not_apply: list[NotThere] = field(default_factory=list)
    """Checks for which what they judge was not there, those of one reason together."""
    not_looked_at: list[NotLookedAt] = field(default_factory=list)
    """Checks that failed themselves, or all the others where the watch did."""
    notes: list[str] = field(default_factory=list)
    """What could not be decided, and why."""
    shortened: bool = False
    """Whether a pass over a DataLoader was."""
    crashed: str | None = None
    """The script's own traceback, or how it ended itself."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Until the first batch or backward pass, and in all."""
    did: dict[str, str] = field(default_factory=dict)
    """What ran, in three lines: data, what was trained, what was scored and saved."""
    unusual: list[Unusual] = field(default_factory=list)
    """Lines of its page that hardly any correct training has, the rarest: no finding."""
    patches: list[Patch] = field(default_factory=list)
    """For each finding, where they were asked for."""
    isolation: Isolation | None = None
    """What became of the user's files; None where whoever runs the script sees to them."""

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def left(self) -> list[Finding]:
        """What was found and no patch repairs."""
        repaired = {patch.check for patch in self.patches if patch.diff is not None or patch.gone_with is not None}
        return [finding for finding in self.findings if finding.check not in repaired]

    @property
    def incomplete(self) -> bool:
        """Whether no error was found, and some checks could not look."""
        return bool(self.not_looked_at) and not self.failed


def check_script(
    script: str,
    arguments: Sequence[str] = (),
    options: WatchOptions = DEFAULTS,
    *,
    leaving: Callable[[Callable[[], CheckReport]], int] | None = None,
    beside: tuple[Callable[[Monitor], Listener], ...] = (),
    also: Callable[[CheckReport, Session], None] = lambda report, session: None,
) -> CheckReport:
    """Run ``script`` with ``arguments``, watched, and say what was found; as :func:`watch_script` does.

    ``beside`` are further sections, of whose session ``also`` adds something to the report.
    """
    from harness.watch.outline import Outline

    def outlined(report: CheckReport, session: Session) -> CheckReport:
        known = ((m.bus, each) for m in session.monitors for each in m.sections if isinstance(each, Outline))
        outlines = [each for bus, each in known if not bus.has_left_out(each)]
        report.did = next(filter(None, (each.outline() for each in outlines)), {})
        if any(each.has_evaluations for each in outlines):
            # What a check needs of an evaluation is more than the outline does, which must not seem to contradict it.
            report.did_not_apply = [
                replace(each, why=f"a model was called without an update, but {each.why}")
                if each.why.startswith("no evaluation")
                else each
                for each in report.did_not_apply
            ]
        also(report, session)
        return report

    with_report = None if leaving is None else lambda outcome: leaving(lambda: outlined(*outcome()))
    return outlined(*watch_script(script, arguments, options, leaving=with_report, sections=(Outline, *beside)))


def watch_script(
    script: str,
    arguments: Sequence[str] = (),
    options: WatchOptions = DEFAULTS,
    *,
    leaving: Callable[[Callable[[], tuple[CheckReport, Session]]], int] | None = None,
    sections: tuple[Callable[[Monitor], Listener], ...] = (),
    every_update: bool = False,
) -> tuple[CheckReport, Session]:
    """Run ``script`` with ``arguments``, watched.

    A script that leaves its process by ``os._exit`` never comes back: ``leaving`` is called before, with what gives the
    result, and returns the process's exit status. The ``len()`` of a DataLoader whose passes are shortened stays what
    it is. ``sections`` are told what the checks are told; with ``every_update`` they see the tensors of all updates.

    Returns:
        What was found, and the session, which is over.

    Raises:
        CannotTry: there is no such script, it is not Python, or it makes no update in this process; or a check that is
            named does not exist, here, in ``[tool.harness]`` of a pyproject.toml or in a comment of the script.
    """
    begun, process, folder = time.perf_counter(), os.getpid(), Path.cwd()
    path = None if options.module else readable_script(script)

    from harness.watch import checks_of
    from harness.watch.instrument import instrumented
    from harness.watch.locate import Locator
    from harness.watch.monitor import Options
    from harness.watch.session import Session
    from harness.watch.shortening import Shortening

    chosen = wanted(path, options.select, options.ignore)
    watched = Options(
        checks_of(chosen.selected),
        every=10 if options.full and not every_update else 1,
        updates=options.updates,
        shortening=None if options.full else Shortening(),
        reload=reload_of(path, options.reload),
        sections=sections,
    )
    session = Session(watched, Locator(path))
    if path is not None and path.suffix == notebooks.SUFFIX and (skipped := notebooks.skipped(path)):
        session.first.note(skipped)

    def outcome(crashed: str | None) -> tuple[CheckReport, Session]:
        with working_in(folder):  # the script may have gone to another
            return _outcome(script, session, crashed, chosen.ignored, begun), session

    def left(status: int) -> int:
        ended = f"{script} ended itself with os._exit({status})" if status else None
        return status if leaving is None else leaving(lambda: outcome(ended))

    session.leaving = left
    with as_main(script, arguments, path), room_on_the_stack(), instrumented(session):
        end = run_as_main(script, path, session.locator)
    if os.getpid() != process:
        sys.exit(end.code)  # a process that the script forked: the verdict is its parent's
    return outcome(end.crashed)


def _hints(script: str, crashed: str) -> Iterator[str]:
    """How else a script is to be started, as the end of its traceback tells."""
    if launch.world_size() is None and launch.wants_a_launcher(crashed):
        yield "it needs a launcher that sets RANK and other variables: use --processes 2"
    if PACKAGELESS in crashed:
        yield f"start a module of a package by its name: write -m {_as_module(script)}"


def _as_module(script: str) -> str:
    """The name of a module by its file, below the working directory."""
    return ".".join(Path(os.path.relpath(script)).with_suffix("").parts)


def _outcome(script: str, session: Session, crashed: str | None, ignored: Collection[str], begun: float) -> CheckReport:
    """End the watch, and put together what was found on all ranks.

    Raises:
        CannotTry: nothing was trained, and nothing found.
    """
    from harness.watch import reported, together

    for monitor in session.monitors if crashed is not None else ():
        monitor.cut_short()
    session.ends()
    found = of_all_ranks(session)
    findings = found.findings
    spoken = {finding.check for finding in findings}
    meant = {finding.check for finding in findings if not is_ignored_by_comment(finding)}
    ignored = {*ignored, *(spoken - meant)}
    silent = [check for check in sorted({*found.looked, *found.lacking}) if check not in {*spoken, *found.crashed}]
    lacking = {check: found.lacking[check] for check in silent if check not in found.looked}
    first = min((monitor.loaded for monitor in session.monitors if monitor.loaded), default=None)
    end = time.perf_counter()
    report = CheckReport(
        script,
        updates=session.updates_made,
        findings=reported(findings, ignored),
        ignored=sorted(spoken & ignored),
        held=[check for check in silent if check in found.looked],
        looked_at={check: what for check in silent if (what := found.looked.get(check))},
        did_not_apply=[NotThere(why, checks) for why, checks in together(lacking).items()],
        not_looked_at=[NotLookedAt(check, how) for check, how in found.crashed.items()],
        notes=found.notes,
        shortened=any(monitor.passes_shortened for monitor in session.monitors),
        crashed=crashed,
        seconds={"before the first batch": (first or end) - begun, "in all": end - begun}
        | ({"reloading": reloading} if (reloading := sum(each.seconds_reloading for each in session.monitors)) else {}),
    )
    if crashed is not None:
        report.notes += _hints(script, crashed)
    if crashed is not None and report.shortened:
        report.notes.append(
            "long passes over a DataLoader were shortened, but its len() is still that of a whole pass; if the script "
            "does not end like this by itself, try --full"
        )
    if session.trained or crashed is not None or session.broken is not None:
        return report
    why = without_updates(script, session)
    if why is not None and not report.findings:
        raise CannotTry(why)
    report.notes.append(why or "no optimizer made a step, so only the calls of the model were checked")
    return report


def without_updates(script: str, session: Session) -> str | None:
    """Why a script that made no update cannot be judged, and what to do; None of one that only calls a model."""
    idle = next((each for each in session.monitors if each.idle_optimizer), None)
    continued = next((each.continued for each in session.monitors if each.continued is not None), None)
    if idle is not None and continued is not None:
        file, where = continued
        return (
            f"{script} made no update: it continued from {os.path.relpath(file)} ({where}), which seems to be of a "
            "finished run; --fresh hides what the script saved, so that it starts from the beginning"
        )
    if idle is not None:
        return (
            f"{script} made an optimizer ({idle.optimizer_made_at[0]}), but no backward pass and no step with it, "
            "so there is nothing to judge; run it with arguments that make it train"
        )
    if any(monitor.models for monitor in session.monitors):
        return None
    return (
        f"{script} made no optimizer step in this process, so there is nothing to judge; if it trains in a separate "
        "process, check the script that it starts there"
    )
