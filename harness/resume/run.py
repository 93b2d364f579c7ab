"""``harness resume``: the script uninterrupted, twice, and then killed and started again."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from harness import launch
from harness.digests import differing
from harness.errors import CannotTry
from harness.findings import Finding, Report
from harness.fingerprint import fingerprint
from harness.resume.attempt import Attempt, Parting
from harness.resume.events import (
    IDLE,
    LAUNCHED,
    EventStarts,
    different,
    event_starts,
    kills_of,
    moments_of,
    saves_to_try,
)
from harness.resume.judge import findings, shown_by, without_fallback
from harness.resume.plan import Kill, KillReport, after_each, asked_to_end, kills, ranks_alone
from harness.resume.repro import check as check_repro
from harness.resume.repro import write as write_repro
from harness.spread import On, spread
from harness.starts.journal import Journal, losses_shown
from harness.starts.moments import Moment
from harness.starts.workdir import LEAST_PATIENCE, PATIENCE, Command, Start, Workdir, no_progress, scratch

Item = TypeVar("Item")
Result = TypeVar("Result")

KILLS = 2

HOW_TO_KEEP = (
    "save the weights, the optimizer's state and the position every N updates, "
    "torch.save({...}, 'new.pt'); os.replace('new.pt', 'checkpoint.pt'), and load that file at the start if it exists"
)


@dataclass
class ResumeReport(Report):
    """What became of a script that was killed."""

    kind: ClassVar[str] = "resume"
    script: str
    kills: list[KillReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    updates: int = 0
    """Number of updates that the uninterrupted script makes."""
    checkpoints: int = 0
    """Files with trained weights that it writes before its last update."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of one uninterrupted start, and of all starts."""
    operations: int = 0
    """Number of file operations in the saves that were gone through with every_event."""
    same: int = 0
    """Moments after which the folder held what it had held at another one, which was tried."""

    @property
    def failed(self) -> bool:
        return bool(self.findings)


def resume_script(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    resume_arguments: Sequence[str] = (),
    count: int = KILLS,
    seed: int = 0,
    processes: int = 1,
    places: Callable[[Journal], list[Kill]] | None = None,
    every_event: bool = False,
    grace: float | None = None,
    repro: Path | None = None,
    tell: Callable[[str], None] = no_progress,
    on: On = "here",
    hidden: tuple[str, ...] = (),
) -> ResumeReport:
    """Kill a script ``count`` times, start it again each time, and compare with what it does uninterrupted.

    Each start is made in a copy of the working directory. ``resume_arguments`` are given besides ``arguments`` where
    it is started again; ``seed`` chooses among places that are as good; ``places`` chooses them otherwise, from the
    journal of the uninterrupted run; with ``every_event`` one save is gone through instead, as
    :mod:`harness.resume.events` does, and each of several ranks is killed alone. With ``grace`` it gets a SIGTERM once
    more, and so many seconds to end by itself. ``repro`` is the folder that is given what shows the first loss at an
    event without this harness. ``hidden`` are patterns of files that it does not see at first.
    ``tell`` gets a line for each start. ``on`` is where they are made, as :func:`harness.spread.spread` has it.

    Raises:
        CannotTry: there is no such script, it crashes uninterrupted, makes no update, keeps no checkpoint below its
            working directory, or differs from itself when it is run twice; the machines are of several kinds; or a
            launcher has started this process.
    """
    from harness.watch.running import readable_script

    begun = time.monotonic()
    if (launch.world_size() or 1) > 1:
        raise CannotTry("harness resume starts the processes itself: call it without a launcher, with --processes")
    if not module:
        readable_script(script)
    command = Command(script, tuple(arguments), module, processes, hidden=hidden)
    if repro is not None:
        check_repro(repro, command, every_event=every_event)
    starts = Starts(command, on)
    if every_event:
        with event_starts(command, resume_arguments) as given:
            tried = _at_every_event(given, script, tell)
            if repro is not None and (shown := tried.first_loss()) is not None:
                write_repro(repro, command, resume_arguments, given.store, *shown)
                tell(f"{repro} has what shows it: python {repro / 'repro.py'}")
        chosen = ranks_alone(tried.whole.journals[0], processes, seed) if processes > 1 else []
    else:
        whole, again = _uninterrupted_twice(starts, tell)
        _check_checkpoints(script, whole.journals[0])
        tried = Tried(script, whole, again, tell)
        chosen = places(whole.journals[0]) if places is not None else kills(whole.journals[0], count, seed)
    chosen += [] if grace is None else asked_to_end(tried.whole.journals[0], grace, seed)
    kill_once = partial(starts.killed, resume_arguments, tried.patience, tried.most, tried.whole.fingerprint)
    for kill, made in starts.spread(kill_once, chosen):
        tried.add(kill, made[0].journals, made[1])
        if kill.kind == "during a save" and kill.at and tried.lost_in_a_save():
            for before, its in starts.spread(kill_once, after_each([kill.at])):
                tried.add(before, its[0].journals, its[1], besides=True)
    report = tried.over()
    report.seconds["in all"] = time.monotonic() - begun
    return report


class Tried:
    """The kills of a script, and what became of each."""

    def __init__(self, script: str, whole: Start, again: Start, tell: Callable[[str], None]) -> None:
        self.whole, self.again = whole, again
        first = whole.journals[0]
        self.report = ResumeReport(script, updates=len(first.updates), checkpoints=len(first.checkpoints()))
        self.report.seconds = {"uninterrupted": whole.seconds}
        self.patience = max(LEAST_PATIENCE, PATIENCE * whole.seconds)
        self.most = 2 * len(first.updates) + 1
        self._tell, self._sources = tell, set[str]()
        self._attempts = list[list[Attempt]]()

    def add(
        self,
        kill: Kill,
        killed: list[Journal],
        restarted: Start,
        *,
        left: float = 0.0,
        **how: Any,
    ) -> None:
        """A kill, with what the ranks had done by then and what they did when they were started again.

        Args:
            left: those that the kills after it will take, if that is known.
            how: further fields of its :class:`KillReport`.
        """
        if kill.grace is not None:
            how["ended"] = _ended(killed[kill.rank or 0], self.whole.journals[0], kill)
            kill = replace(kill, at=len(killed[kill.rank or 0].updates))
        hung = self.patience if restarted.timed_out else None
        ranks = zip(self.whole.journals, self.again.journals, killed, restarted.journals, strict=True)
        of_each = [Attempt(kill, *journals, sources=self._sources, hung=hung) for journals in ranks]
        self._sources |= {each.source for each in of_each if each.source is not None}
        self._attempts.append(of_each)
        self.report.kills.append(_reported(of_each, **how))
        line = _line(self.report.kills[-1], self.report.seconds["uninterrupted"] / max(1, self.report.updates))
        self._tell(line + f"; about {left:.0f} s left" * (left >= 1))

    def lost_in_a_save(self) -> bool:
        """Whether the latest kill, during a save, lost something that no kill elsewhere did."""
        *before, last = self.report.kills
        elsewhere = {name for each in before for name in each.lost if each.kind != "during a save"}
        return bool(set(last.lost) - elsewhere)

    def first_loss(self) -> tuple[KillReport, Moment, Finding] | None:
        """The first kill at an event that lost something, the folder as it left it, and the finding."""
        for kill, attempts in zip(self.report.kills, self._attempts, strict=True):
            moment = attempts[0].kill.moment
            if moment is not None and (found := findings(attempts, self.report.script)):
                return kill, moment, found[0]
        return None

    def over(self) -> ResumeReport:
        """The report, when the script was killed for the last time: one kill may show what another one lost."""
        kills = zip(self.report.kills, self._attempts, strict=True)
        self.report.kills = [replace(kill, lost=_lost(attempts)) for kill, attempts in kills]
        self.report.findings = findings((each for attempts in self._attempts for each in attempts), self.report.script)
        return self.report


def _at_every_event(starts: EventStarts, script: str, tell: Callable[[str], None]) -> Tried:
    """Go through one save, and through what is written before the first update.

    Raises:
        CannotTry: the script does not run, keeps no checkpoint, differs from itself, or no file operation is seen.
    """
    whole = starts.whole()
    first = whole.journals[0]
    tell(f"uninterrupted: {len(first.updates)} updates, {_checkpoints(first)}, {whole.seconds:.0f} s")
    _check_checkpoints(script, first)
    ats, ends = saves_to_try(first)
    if not ats:
        raise CannotTry(
            f"{script} keeps checkpoints, but no file operation of a save was seen; perhaps a database or another "
            "program writes them"
        )
    again = starts.again(ats, ends)
    for one, other in zip(whole.journals, again.journals, strict=True):
        _check_repeats(script, one, other)
    taken = starts.store.moments()
    chosen = [kill for at in ats for kill in kills_of(moments_of(taken, at, starts.store))[at == 0 :]]
    chosen += [kills_of([each for each in taken if each.at == at])[-1] for at in ends]
    kills, tried = different(chosen), Tried(script, whole, again, tell)
    tried.report.operations = sum(each.at in ats for each in first.operations)
    tried.report.same = len(chosen) - len(kills)
    tell(
        f"uninterrupted again: the same, bit for bit; {tried.report.operations} file operations after update {ats[-1]}"
        f"{' and before the first' * (ats[0] == 0)}: {len(kills)} points at which to kill it "
        f"({tried.report.same} more would leave the same files)"
    )
    for kill, (start, left) in zip(kills, starts.after(kills, tried.patience, tried.most, tell), strict=True):
        tried.add(kill, starts.killed_at(kill), start, left=left)
    return tried


def _ended(killed: Journal, whole: Journal, kill: Kill) -> str:
    """What a script did that was asked to end."""
    asked = kill.place.update or 0
    usual = {(saved.at, saved.path) for saved in whole.saves}
    own = [each for each in killed.saves if each.done and each.at >= asked and (each.at, each.path) not in usual]
    saved = f"saved {own[-1].path}" if own else "saved nothing"
    if killed.late:
        return f"{saved} and had not ended after {kill.grace:g} s"
    return f"{saved} and {'ended' if killed.end is not None else 'the signal ended it'}"


@dataclass(frozen=True)
class Starts:
    """The starts of a script, which are independent of each other: in this process, or spread over machines."""

    command: Command
    on: On

    def spread(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
        """Each item, in order, with what came of it."""
        processes, folder = self.command.processes, Path(self.command.folder)
        threads = 1 if processes > 1 else None
        return spread(work, items, self.on, threads=threads, processes=processes, folder=folder, in_order=True)

    def uninterrupted(self, number: int) -> Start:
        """Run it to its end, the first or the second time.

        Raises:
            CannotTry: it crashes, or nothing is trained.
        """
        with self._workdir() as workdir:
            start = workdir.uninterrupted(launched=LAUNCHED, idle=IDLE, tells_held_out=True)
            return replace(start, fingerprint=self._fingerprint())

    def killed(
        self, arguments: Sequence[str], patience: float, most: int, expected: dict[str, Any], kill: Kill
    ) -> tuple[Start, Start]:
        """Kill it once, and start it again with ``arguments`` besides its own: both starts.

        Each is ended after ``patience`` seconds, the second one after ``most`` updates.

        Raises:
            CannotTry: it did not come to where it was to be killed, or was not recorded; or this machine is not as
                ``expected``.
        """
        _check_alike(expected, self._fingerprint())
        script = self.command.script
        with self._workdir() as workdir:
            how: dict[str, Any] = {"rank": kill.rank, "restarts": kill.restarts, "grace": kill.grace}
            orders = workdir.orders(place=kill.place, tells_held_out=True, **how)
            killed = workdir.start(orders, patience + (kill.grace or 0.0))
            if not killed.journals[kill.rank or 0].killed:
                why = f"it was stopped after {patience:.0f} s" if killed.timed_out else killed.stderr.strip()
                raise CannotTry(
                    f"{script} did not reach the point where it was to be killed, {kill.kind} at update {kill.at}, "
                    f"although the uninterrupted run did; {why or 'it printed nothing'}"
                )
            if kill.restarts:
                resumed = replace(killed, journals=killed.restarted, seconds=0.0)
            else:
                resumed = workdir.start(workdir.orders(arguments, most_updates=most, tells_held_out=True), patience)
        failed = next((each.end.failed for each in resumed.journals if each.end is not None and each.end.failed), None)
        if failed:
            raise CannotTry(f"{script} could not be recorded after it was killed: {failed}")
        return killed, resumed

    @contextmanager
    def _workdir(self) -> Iterator[Workdir]:
        with scratch("harness-resume-") as given:
            yield given.workdir(0, replace(self.command, python=sys.executable))

    def _fingerprint(self) -> dict[str, Any]:
        """What decides about the bits that are computed; here nothing does, as all are computed on one machine."""
        return {} if self.on == "here" else fingerprint()


def _check_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Whether two machines compute the same bits.

    Raises:
        CannotTry: they need not; names what they differ in.
    """
    for name in one:
        if one[name] != other[name]:
            raise CannotTry(
                f"the nodes differ, and may not compute the same bits: {name} is {one[name]} on one "
                f"and {other[name]} on another; give Ray nodes of one kind"
            )


def _uninterrupted_twice(starts: Starts, tell: Callable[[str], None]) -> tuple[Start, Start]:
    """Run the script to its end, twice.

    Raises:
        CannotTry: it crashes, makes no update, or differs from itself; or the two machines do.
    """
    made = starts.spread(starts.uninterrupted, (1, 2))
    _, whole = next(made)
    first = whole.journals[0]
    tell(f"uninterrupted: {len(first.updates)} updates, {_checkpoints(first)}, {whole.seconds:.0f} s")
    _, again = next(made)
    _check_alike(whole.fingerprint, again.fingerprint)
    for one, other in zip(whole.journals, again.journals, strict=True):
        _check_repeats(starts.command.script, one, other)
    tell("uninterrupted again: the same, bit for bit")
    return whole, again


def _checkpoints(journal: Journal) -> str:
    files = {saved.path for saved in journal.checkpoints()}
    times = len({saved.at for saved in journal.checkpoints()})
    return f"{times} checkpoints" if len(files) != 1 else f"{times} checkpoints in {files.pop()}"


def _check_checkpoints(script: str, whole: Journal) -> None:
    """Whether the script writes what it could go on from.

    Raises:
        CannotTry: it does not, or outside of its working directory.
    """
    checkpoints = whole.checkpoints()
    if not checkpoints:
        raise CannotTry(
            f"{script} keeps no checkpoint: no file with its weights is written before its last update; {HOW_TO_KEEP}"
        )
    outside = next((saved for saved in checkpoints if Path(saved.path).is_absolute()), None)
    if outside is not None:
        raise CannotTry(
            f"{script} keeps its checkpoints in {outside.path} ({outside.where}), outside the working directory, "
            "where two runs would share them; give it a path below the working directory"
        )


def _check_repeats(script: str, whole: Journal, again: Journal) -> None:
    """Whether two uninterrupted runs are the same.

    Raises:
        CannotTry: they are not; names the first difference and what to seed.
    """
    for one, other in zip(whole.updates, again.updates, strict=False):
        parting = Parting(1, one, other)
        what = _first_difference(parting)
        if what is None:
            continue
        differs = f"{what} in update {one.at}"
        raise CannotTry(f"{script} differs between two uninterrupted runs: {differs}; {_remedy(parting)}")
    if len(whole.updates) != len(again.updates):
        raise CannotTry(
            f"{script} differs between two uninterrupted runs: {len(whole.updates)} updates and "
            f"{len(again.updates)}; seed what decides when it stops"
        )


def _remedy(parting: Parting) -> str:
    """What to seed, where two uninterrupted runs differ."""
    other_rows = parting.rows_differ or parting.contents_differ
    if parting.update == 1 and parting.weights:
        rows = "what draws the rows and " if other_rows else ""
        return f"seed {rows}what initialises the model: torch.manual_seed(0) before it is made"
    if generators := parting.lost_generators:
        calls = {"Python": "random.seed(0)", "NumPy": "numpy.random.seed(0)", "torch": "torch.manual_seed(0)"}
        return "seed " + " and ".join(f"{each} ({calls.get(each, 'manual_seed')})" for each in generators)
    if other_rows:
        return "seed what draws the rows, a generator of its own perhaps, and read files in one order: sorted(...)"
    return "choose deterministic kernels: torch.use_deterministic_algorithms(True)"


def _first_difference(parting: Parting) -> str | None:
    one, other = parting.whole, parting.resumed
    if parting.rows_differ or parting.contents_differ:
        return "the rows differ"
    if parting.weights:
        return "the trained weights differ"
    if one.losses != other.losses:
        return f"the loss is {losses_shown(one.losses)} and {losses_shown(other.losses)}"
    if one.gradients != other.gradients or parting.state:
        return "the gradients differ"
    if (one.lr, one.options) != (other.lr, other.options):
        return "the learning rate or weight decay differs"
    if (one.scale, one.skipped) != (other.scale, other.skipped):
        return "the GradScaler differs"
    if differing(one.others, other.others) or one.evaluations != other.evaluations:
        return "the evaluated models give different outputs"
    return None


def _lost(attempts: Sequence[Attempt]) -> tuple[str, ...]:
    return tuple(without_fallback(dict.fromkeys(name for attempt in attempts for name in shown_by(attempt))))


def _reported(attempts: Sequence[Attempt], **how: Any) -> KillReport:
    first, kill = attempts[0], attempts[0].kill
    if (moment := kill.moment) is not None:
        how |= {"event": str(moment), "where": None if moment.operation is None else moment.operation.where}
    kind = f"{kill.kind}: rank {kill.rank}" if kill.rank is not None else kill.kind
    kind += ", restarted by its launcher" * bool(kill.restarts)
    again = max(0, kill.at - first.origin)
    return KillReport(kill.at, first.resumed_from, kind, _lost(attempts), again=again, **how)


def _line(kill: KillReport, seconds: float) -> str:
    began = "started from the beginning" if kill.resumed_from is None else f"continued after update {kill.resumed_from}"
    why = " (an extra kill just before the save that lost something)" if kill.besides else ""
    kind = kill.kind if kill.event is None else kill.event
    if kill.ended is not None:
        kind += f", {kill.ended}; {kill.again} updates ({kill.again * seconds:.0f} s) are repeated"
    at = f"at update {kill.at}" if kill.at else "before the first update"
    return f"killed {at}, {kind}{why}: {began}, {', '.join(kill.lost) or 'the same, bit for bit'}"
