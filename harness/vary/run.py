"""``harness vary``: the script as it is, twice, and once more for each thing that is changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import ClassVar

from harness import catalogue, launch
from harness.errors import CannotTry
from harness.findings import Finding, Report
from harness.starts.isolated import named
from harness.starts.journal import Journal
from harness.starts.workdir import (
    LEAST_PATIENCE,
    PATIENCE,
    Command,
    Scratch,
    Start,
    Workdir,
    at_once,
    must_train,
    no_progress,
    scratch,
)
from harness.vary.account import FILE, Account
from harness.vary.child import TASK
from harness.vary.differences import Run
from harness.vary.relation import Outcome, Relation, Result, Tried, Way, lacks

LAUNCHED = "harness vary starts each script in one process, and without a launcher"
"""What to do with a script that a launcher is to start."""

IDLE = "so there is nothing to vary; processes that it starts itself (torch.multiprocessing, torchrun) are not watched"
"""What follows where a script makes no update."""

USUAL = {"PYTHONHASHSEED": "0"}
"""What is set for every start, so that two of them can be equal."""

AT_ONCE = 2
"""Starts at a time, where there are as many cores, memory for them, and no GPU that they would share."""


@dataclass(frozen=True)
class RelationReport:
    """What came of one relation."""

    relation: str
    tries: str
    """What was changed."""
    result: Result
    why: str = ""
    """Why it did not apply, or what was seen although it held."""


@dataclass
class VaryReport(Report):
    """What a script's run depends on."""

    kind: ClassVar[str] = "vary"
    script: str
    updates: int = 0
    """Number of updates that the unchanged script makes, its training passes shortened."""
    shortened: bool = False
    relations: list[RelationReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Relations that are broken and were not wanted."""
    notes: list[str] = field(default_factory=list)
    starts: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of one start of the unchanged script, and of all starts."""

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def applied(self) -> int:
        """How many relations could be tried."""
        return sum(each.result != "did not apply" for each in self.relations)


def all_relations() -> dict[str, type[Relation]]:
    """Every relation by its id."""
    return {name: each for name, each in catalogue.relations().items() if issubclass(each, Relation)}


def wanted(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[dict[str, type[Relation]], set[str]]:
    """The relations that are tried, and the ids of those whose findings do not count.

    Raises:
        CannotTry: there is no relation and no family of that name.
    """
    known = all_relations()
    selected = catalogue.resolve(select, catalogue.relations()) if (select := list(select)) else set(known)
    ignored = catalogue.resolve(ignore, catalogue.relations())
    return {name: each for name, each in known.items() if name in selected}, ignored


def vary_script(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    full: bool = False,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    hidden: tuple[str, ...] = (),
    tell: Callable[[str], None] = no_progress,
) -> VaryReport:
    """Start a script as it is, twice, and once for each relation with one thing changed, and say what follows it.

    Each start is made in a copy of the working directory. Training passes are shortened as in ``harness check``, unless
    ``full``; evaluations are whole. ``hidden`` are patterns of files that the script does not see. ``tell`` gets a line
    for each start.

    Raises:
        CannotTry: there is no such script, it crashes as it is, or makes no update; there is no relation of a name; or
            a launcher has started this process.
    """
    from harness.watch.running import readable_script

    if (launch.world_size() or 1) > 1:
        raise CannotTry("harness vary starts the script itself, in one process: call it without a launcher")
    path = None if module else readable_script(script)
    relations, ignored = wanted(select, ignore)
    environment = tuple(USUAL.items())
    command = Command(script, tuple(arguments), module, hidden=hidden, environment=environment)
    report, begun = VaryReport(script), time.perf_counter()
    tell(f"{len(relations)} relations, in at most {len(_changes(relations)) + 2} starts of {script}")
    with scratch("harness-vary-") as given:
        starts = _Starts(given, command, shortened=not full)
        first, again, kept = starts.as_it_is(tell)
        text = path.read_text(encoding="utf-8", errors="replace") if path is not None and path.suffix == ".py" else ""
        tried = Tried(script, tuple(arguments), first, again, text)
        ways = {name: relation.way(tried) for name, relation in relations.items()}
        outcomes = {name: lacks(way) for name, way in ways.items() if isinstance(way, str)}
        made: list[tuple[Way, list[str]]] = []
        for name, way in ways.items():
            if not isinstance(way, str):
                of_way = next((names for other, names in made if other == way), None)
                made.append((way, [name])) if of_way is None else of_way.append(name)
        starts.tell_plan(len(made), tell)
        for (_, names), other in starts.varied(made, kept, tell, relations):
            for name in names:
                outcomes[name] = _judged(relations[name], tried, other)
        report.starts = 2 + len(made)
    for name, relation in relations.items():
        outcome = outcomes[name]
        if outcome.result == "broken" and name not in ignored:
            where = outcome.where or f"{script}:1"
            report.findings.append(relation.finding(outcome.expected, outcome.observed, where, outcome.update))
        elif outcome.result == "broken":
            report.ignored.append(name)
        report.relations.append(RelationReport(name, relation.tries, outcome.result, outcome.why))
    report.findings.sort(key=lambda each: each.severity)
    report.updates, report.shortened = len(first.journal.updates), not full
    report.notes += _notes(first.account)
    report.seconds = {"one start": first.seconds, "in all": time.perf_counter() - begun}
    return report


def _changes(relations: dict[str, type[Relation]]) -> set[tuple[str, str]]:
    return {(each.kind, each.tries) for each in relations.values()}


def _judged(relation: type[Relation], tried: Tried, other: Run) -> Outcome:
    if other.crashed is not None:
        return lacks(f"with this change the script ends early: {other.crashed}")
    made = {each.number: each.where for each in tried.first.account.loaders}
    if any(made.get(each.number, each.where) != each.where for each in other.account.loaders):
        return lacks("with this change the script makes its DataLoaders in a different order; they cannot be matched")
    return relation.judge(tried, other)


def _notes(account: Account) -> Iterator[str]:
    if "torch" not in account.seeded:
        yield "the script does not seed torch: every run started with seed 0, so all draw the same random numbers"


class _Starts:
    """The starts of one script."""

    def __init__(self, given: Scratch, command: Command, *, shortened: bool) -> None:
        self._given, self._command, self._shortened = given, command, shortened
        self._numbers = count(1)
        self._seconds = self._patience = 0.0
        self._at_once = 1

    def as_it_is(self, tell: Callable[[str], None]) -> tuple[Run, Run, Workdir]:
        """Two starts of the script as it is, and the folder that the second one left.

        Raises:
            CannotTry: it crashes, or nothing is trained.
        """
        first = self._must_train(workdir := self._workdir(self._command))
        workdir.remove()
        self._seconds, self._patience = first.seconds, max(LEAST_PATIENCE, PATIENCE * first.seconds)
        self._at_once = at_once(AT_ONCE)
        tell(f"unchanged: {len(first.journal.updates)} updates, {first.seconds:.0f} s")
        again = self._must_train(kept := self._workdir(self._command))
        tell(f"unchanged, again: {again.seconds:.0f} s")
        return first, again, kept

    def _must_train(self, workdir: Workdir) -> Run:
        try:
            run, start = self._start(workdir, Way())
            must_train(start, self._command, launched=LAUNCHED, idle=IDLE)
        except BaseException:
            workdir.remove()
            raise
        return run

    def tell_plan(self, number: int, tell: Callable[[str], None]) -> None:
        rounds = -(-number // self._at_once)
        at_once = f", {self._at_once} at a time" if self._at_once > 1 else ""
        tell(f"{number} more starts of {self._seconds:.0f} s{at_once}: about {rounds * self._seconds:.0f} s")

    def varied(
        self,
        ways: Sequence[tuple[Way, list[str]]],
        kept: Workdir,
        tell: Callable[[str], None],
        relations: dict[str, type[Relation]],
    ) -> Iterator[tuple[tuple[Way, list[str]], Run]]:
        """Each way to start it otherwise, with what came of it."""

        def run(each: tuple[Way, list[str]]) -> Run:
            way = each[0]
            if way.after_another:
                return self._start(kept, way)[0]
            environment = dict(self._command.environment) | dict(way.environment)
            arguments = self._command.arguments if way.arguments is None else way.arguments
            command = replace(self._command, arguments=arguments, environment=tuple(environment.items()))
            workdir = self._workdir(command)
            try:
                return self._start(workdir, way)[0]
            finally:
                workdir.remove()

        pool = ThreadPoolExecutor(self._at_once)
        try:
            for made, (outcome, other) in enumerate(zip(ways, pool.map(run, ways), strict=True), start=1):
                seconds_left = -(-(len(ways) - made) // self._at_once) * self._seconds
                about = f"; about {seconds_left:.0f} s left" * (made < len(ways))
                tell(f"{relations[outcome[1][0]].tries}: {other.seconds:.0f} s{about}")
                yield outcome, other
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # starts that go on are ended with the scratch folder
            kept.remove()

    def _workdir(self, command: Command) -> Workdir:
        return self._given.workdir(next(self._numbers), command)  # from several threads

    def _start(self, workdir: Workdir, way: Way) -> tuple[Run, Start]:
        orders = workdir.orders(task=TASK, vary=asdict(way.change), shortened=self._shortened)
        start = workdir.start(orders, self._patience or None)
        journal = start.journals[0]
        account = Account.read(orders.folder) if Path(orders.folder, FILE).exists() else Account()
        # Of a script outside the working directory a place has its path, which is another in each start.
        journal.updates = [replace(each, where=named(each.where, workdir.real)) for each in journal.updates]
        journal.loads = named(journal.loads, workdir.real)
        return Run(journal, named(account, workdir.real), start.seconds, ended(start, journal)), start


def ended(start: Start, journal: Journal) -> str | None:
    """How a start ended that did not end well, in one line."""
    if start.timed_out:
        return f"it was stopped after {start.seconds:.0f} s"
    text = start.stderr if journal.end is None else journal.end.crashed or journal.end.failed
    if text is None:
        return None
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "it ended without a message"
