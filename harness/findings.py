"""Finding, StageCheck and its outcome: what stages, records and reports speak of."""

from __future__ import annotations

import ast
import linecache
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

from harness.errors import CannotTry

Severity = Literal["error", "warning"]
Outcome = Literal["holds", "fails", "not applicable"]

Observed = TypeVar("Observed")
"""What a check looks at: a run of the documented stages, or the trace of somebody's loop."""


NOT_SEEN = " was seen"
"""How the reason ends why a check of a loop did not apply, if it is one that begins with "no": the harness sees what it
recognises, and a reason must not say more."""


class NotApplicable(Exception):
    """Raised by a check that has nothing to say about this run; its message is the reason."""


UNUSUAL = "unusual"
"""What ``--ignore`` and comments call the marks of lines that hardly any correct training has; no check's id."""


@dataclass(frozen=True)
class Unusual:
    """A line of the page that hardly any correct training has: worth a look, and no finding."""

    section: str
    text: str
    fact: str
    """What is rare of it, in words."""
    projects: int
    """Correct projects that have it."""
    of: int
    """Correct projects that could."""
    where: str | None = None
    """FILE:LINE of the user's line."""

    @property
    def mark(self) -> str:
        return f"[unusual: {self.projects} of {self.of} correct trainings]"


@dataclass(frozen=True)
class Finding:
    """Something that should hold and does not.

    A check yields findings with what it saw; the check's own id, severity and sentence are filled in when it is run.
    """

    expected: str
    observed: str
    hint: str
    """What to do about it."""
    where: str | None = None
    """FILE:LINE, or the place in the data."""
    update: int | None = None
    """The number of the update, counted from 1, where the finding is about one."""
    check: str = ""
    severity: Severity = "error"
    message: str = ""
    explained_by: str | None = None
    """The id of another finding's check, from whose fault this may follow; None where it stands alone."""
    details: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What a repair must know of it, by name: it reads no sentence. Reports in JSON are without it."""

    def as_dict(self) -> dict[str, Any]:
        return told(self)

    @property
    def place(self) -> str:
        """Where it is, in words; empty where nothing is known."""
        update = f"update {self.update}" if self.update is not None else None
        return ", ".join(filter(None, (self.where, update)))

    def lines(self) -> list[str]:
        """The finding as the terminal shows it: in one line below its cause where it has one."""
        if self.explained_by is not None:
            at = f" at {self.where}" if self.where else ""
            return [f"    also      {self.severity}: {self.check}{at}; may follow from it"]
        place = self.place
        return [
            f"  {self.severity}: {self.check}: {self.message}",
            f"    expected  {self.expected}",
            f"    observed  {shortened(self.observed)}",
            *([f"    where     {place}"] if place else []),
            *(f"              {line}" for line in code_frame(self.where)),
            f"    fix       {self.hint}",
        ]


def told(value: Any) -> dict[str, Any]:
    """A dataclass as JSON tells it: a finding without its details, whose names may change at any time."""
    return asdict(value, dict_factory=lambda pairs: {key: each for key, each in pairs if key != "details"})


def roots(checks: Iterable[str], explains: Mapping[str, Collection[str]]) -> dict[str, str | None]:
    """What each of some faults may follow from, by their ids: one of them that follows from none; None for such a one.

    ``explains`` has the ids that follow from a fault. What follows from what follows has the same root. Of faults that
    follow from each other alone, the first stands for all.
    """
    waiting = list(dict.fromkeys(checks))
    effects = {
        each: [other for other in waiting if other != each and other in explains.get(each, ())] for each in waiting
    }
    follow = {other for others in effects.values() for other in others}
    found: dict[str, str | None] = {}
    for root in sorted(waiting, key=lambda each: each in follow):  # of those that all follow, the first
        if root in found:
            continue
        found[root] = None
        reached = list(effects[root])
        while reached:
            each = reached.pop(0)
            if each not in found:
                found[each] = root
                reached += effects[each]
    return found


def below_their_causes(findings: Sequence[Finding], explains: Mapping[str, Collection[str]]) -> list[Finding]:
    """All findings, errors first, in the order of the updates; one that may follow from another is right behind it.

    ``explains`` has the ids that follow from a fault, as :func:`roots` has it.
    """
    ordered = sorted(findings, key=lambda each: (each.severity, each.update or 0))
    causes = roots((each.check for each in ordered), explains)
    following: dict[str, list[Finding]] = {}
    for follower in ordered:
        if (cause := causes[follower.check]) is not None:
            following.setdefault(cause, []).append(replace(follower, explained_by=cause))
    # An error below a warning is as urgent as any other.
    alone = sorted(
        (each for each in ordered if causes[each.check] is None),
        key=lambda each: min(other.severity for other in (each, *following.get(each.check, ()))),
    )
    return [finding for each in alone for finding in (each, *following.pop(each.check, ()))]


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """The errors among findings. One that follows from a warning stands alone, since the warning is not among them."""
    errors = [each for each in findings if each.severity == "error"]
    shown = {each.check for each in errors}
    return [each if each.explained_by in shown else replace(each, explained_by=None) for each in errors]


def lines_apart(findings: Iterable[Finding]) -> Iterator[str]:
    """Findings as a terminal shows them, an empty line before each that follows from none."""
    for finding in findings:
        yield from ([] if finding.explained_by else [""])
        yield from finding.lines()


def expect(
    expected: object,
    observed: object,
    *,
    of: str = "",
    where: str | None = None,
    update: int | None = None,
    hint: str,
) -> Iterator[Finding]:
    """The finding that ``observed`` is not equal to ``expected``; nothing where it is.

    ``of`` names what both are, and stands before them.
    """
    if observed != expected:
        texts = [f"{of} {_as_text(value)}".lstrip() for value in (expected, observed)]
        yield Finding(expected=texts[0], observed=texts[1], where=where, update=update, hint=hint)


def _as_text(value: object) -> str:
    """A value as a finding shows it; the members of a set in order."""
    if isinstance(value, Set):
        return ", ".join(sorted(map(str, value))) or "none"
    return str(value)


PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)")
"""A finding's place where it is a line of a file."""

CELL = re.compile(r"Cell In\[(?P<cell>\d+)\], line (?P<line>\d+)")
"""A finding's place where it is a line of a notebook's cell."""

LONGEST_LINE = 100
"""Characters of a line of source that are shown."""


def code_frame(where: str | None, around: int = 1) -> list[str]:
    """The line of a place between its neighbours, ``around`` on each side; nothing where it cannot be read.

    Nor where it is a file's first line, which stands for the file where no line is at fault.
    """
    lines, at = lines_at(where)
    if at < 2 and not CELL.fullmatch(where or ""):
        return []
    if at > len(lines) or not lines[at - 1].strip():
        return []
    numbers = range(max(1, at - around), min(at + around, len(lines)) + 1)
    source = textwrap.dedent("\n".join(lines[number - 1].expandtabs(4).rstrip() for number in numbers)).split("\n")
    width = len(str(numbers[-1]))
    return [
        f"{'>' if number == at else ' '} {number:{width}} | {shortened(line, LONGEST_LINE)}".rstrip()
        for number, line in zip(numbers, source, strict=True)
    ]


def lines_at(where: str | None) -> tuple[list[str], int]:
    """All lines of the file or cell of a place, and the number of its own; none and 0 where they cannot be read."""
    if cell := CELL.fullmatch(where or ""):
        return _lines_of_cell(int(cell["cell"])), int(cell["line"])
    place = PLACE.fullmatch(where or "")
    return (_lines_of_file(place["file"]), int(place["line"])) if place is not None else ([], 0)


def tree_at(where: str | None) -> tuple[ast.Module, int]:
    """The syntax tree of the file or cell of a place, and the number of its line; empty where it cannot be read."""
    lines, line = lines_at(where)
    try:
        return ast.parse("\n".join(each.rstrip("\n") for each in lines)), line
    except (SyntaxError, ValueError):
        return ast.Module([], []), line


def between(low: float, high: float) -> str:
    """A range of numbers as it is shown: one number where both read the same."""
    one, other = f"{low:.3g}", f"{high:.3g}"
    return one if one == other else f"{one} to {other}"


def _lines_of_file(file: str) -> list[str]:
    if file not in linecache.cache and not os.path.isfile(file):  # what was typed is in the cache alone
        return []
    linecache.checkcache(file)
    return linecache.getlines(file)


CELLS: dict[int, list[str]] = {}
"""The lines of a notebook's cells, by their number, where the harness runs it (:mod:`harness.watch.notebooks`)."""


def _lines_of_cell(number: int) -> list[str]:
    """A cell as it was executed: IPython keeps them all in ``In``."""
    shell = interactive_shell()
    if shell is None:
        return CELLS.get(number, [])
    cells = shell.user_ns.get("In", [])
    return str(cells[number]).splitlines() if number < len(cells) else []


def interactive_shell() -> Any | None:
    """IPython's shell, which runs a notebook's cells too; None outside of it."""
    module = sys.modules.get("IPython")
    ask = getattr(module, "get_ipython", None)  # a stand-in for IPython has none
    return ask() if ask is not None else None


def shortened(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def count(number: int, what: str) -> str:
    """ "1 row", "2 rows", "2 batches", "2 classes"."""
    plural = f"{what[:-1]}ies" if what.endswith("ry") else what + ("es" if what.endswith(("s", "ch", "x")) else "s")
    return f"{number:,} {what if number == 1 else plural}"


def few(names: Sequence[str], most: int) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first_line(error: BaseException) -> str:
    """An error in one line of bounded length: libraries quote whole files."""
    first = ""
    with suppress(Exception):  # its class may be the script's
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {shortened(first, 200)}" if first else type(error).__name__


@dataclass(frozen=True)
class CheckOutcome:
    """How one check came out, as a run record keeps it. ``reason`` says why it is not applicable."""

    check: str
    stage: str
    claim: str
    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True)
class CheckResult(CheckOutcome):
    """How one check came out, with what it found; a run record keeps the findings of all checks in one list."""

    findings: tuple[Finding, ...] = ()

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


SCHEMA = 3
"""Schema of reports, as ``--json`` has them. Keys may be added without another number."""


Value = TypeVar("Value")


def strict(value: Value) -> Value:
    """A value of which JSON can be made, with "NaN", "Infinity" and "-Infinity" for numbers that JSON has not."""
    found: Any = value
    if isinstance(value, dict):
        found = {key: strict(each) for key, each in value.items()}
    elif isinstance(value, (list, tuple)):
        found = [strict(each) for each in value]
    elif isinstance(value, float) and not math.isfinite(value):
        found = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return cast("Value", found)


@dataclass
class Report:
    """What a command found. A subclass has its kind, and what was found as fields."""

    kind: ClassVar[str]

    def as_dict(self) -> dict[str, Any]:
        """Report in the form of ``--json``."""
        return {"schema": SCHEMA, "kind": self.kind} | told(self)


MOST_FILES = 4
"""Files that are named in a line."""


@dataclass
class Isolation:
    """What became of the user's files while a script ran, and what of it stayed on the machine."""

    kind: Literal["directory", "in place"]
    """Whether the script ran in a directory of its own, or where it lies."""
    level: Literal["overlay", "mirror", "guard"] | None = None
    """What kept the user's files: the kernel; a mirror, with programs held back; or a mirror alone. None in place."""
    instead: str | None = None
    """Why no better level was used, where one was tried."""
    wrote: int = 0
    """The files that it wrote."""
    bytes: int = 0
    """What they hold in all."""
    removed: int = 0
    """The files and folders that it removed, where the kernel has kept them."""
    kept_in: str | None = None
    """The folder that was given them; None where they are gone."""
    hidden: list[str] = field(default_factory=list)
    """Patterns of what was there and hidden from it."""
    cached: list[str] = field(default_factory=list)
    """Caches that it made beside its data, and will find again."""
    put_back: list[str] = field(default_factory=list)
    """What it changed outside of the directory, and is as it was."""
    not_put_back: list[str] = field(default_factory=list)
    """What could not be, with why."""
    changed: list[str] = field(default_factory=list)
    """What is another, because it ran in place, or in a way that nothing was heard of."""
    elsewhere: list[str] = field(default_factory=list)
    """What changed meanwhile, where the script can hardly have done so."""
    programs: list[str] = field(default_factory=list)
    """Other programs that it started."""
    refused: list[str] = field(default_factory=list)
    """Programs that failed because they may write in the directory alone, with their exit status and the path."""
    held_back: list[str] = field(default_factory=list)
    """Calls that upload, and did not."""

    @property
    def harmed(self) -> bool:
        """Whether a file of the user's is another, though the script did not run in place; or a program was refused."""
        return bool(self.not_put_back or self.refused or (self.changed and self.kind == "directory"))

    def lines(self, *, quiet: bool = False) -> Iterator[str]:
        """What became of it; with ``quiet`` what a person must know all the same."""
        yield from self._problems()
        yield from () if quiet else self._rest()

    def _problems(self) -> Iterator[str]:
        if self.not_put_back:
            yield f"  not restored: {'; '.join(self.not_put_back)}; see harness doctor"
        for program in self.refused:
            yield f"  blocked: {program}; its consequences were not checked (docs/isolation.md)"
        if self.instead:
            yield f"  ran in a mirror of the working directory: {self.instead}"
        if self.changed and self.kind == "directory":
            by = (
                f"perhaps by {few(self.programs, MOST_FILES)}, which it started"
                if self.programs
                else "without our noticing"
            )
            yield f"  changed, {by}, and not restored: {few(self.changed, MOST_FILES)}"
        elif self.changed:
            yield f"  changed in place: {few(self.changed, MOST_FILES)}"

    def _rest(self) -> Iterator[str]:
        if self.hidden:
            yield f"  hidden: {few(self.hidden, MOST_FILES)}, which the script saved and would continue from"
        if self.held_back:
            started = "; programs that it started were told to stay offline" * bool(self.programs)
            yield f"  blocked, so not uploaded: {'; '.join(self.held_back)}{started}; its own requests were not blocked"
        if self.cached:
            yield f"  kept for the next run: {count(len(self.cached), 'cache')} of datasets next to the data"
        if self.kind == "directory" and not self.wrote and self.removed:
            yield f"  removed {count(self.removed, 'file')} or folders in its own view; yours are unchanged"
        if self.kind == "directory" and self.wrote:
            kept = f"kept in {self.kept_in}" if self.kept_in else "not kept (--keep FOLDER keeps them)"
            back = f"; restored: {few(self.put_back, MOST_FILES)}" if self.put_back else ""
            yield f"  wrote {count(self.wrote, 'file')}, {_size(self.bytes)}; {kept}{back}"


def _size(number: int) -> str:
    """A number of bytes as people say it."""
    size = float(number)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


DOCUMENTED_ADAMW = "the documents' transformers.AdamW"
"""What the documents' optimizer would have been is listed beside Trainer's, which it is not."""


@dataclass(frozen=True)
class Difference:
    """One thing in which another way to train is not the document's own loop."""

    what: str
    there: str
    by_hand: str
    effect: float
    """The largest difference of any parameter after the replayed updates, where this alone is switched on."""


@dataclass(frozen=True)
class StageCheck(Generic[Observed]):
    """A named statement that must hold.

    ``claim`` is the id of the claim or invariant that it stands for. The mutant that proves that it can fail carries
    the check's id (tests/mutants).
    """

    id: str
    """STAGE::NAME."""
    claim: str
    statement: str
    function: Callable[[Observed], Iterator[Finding]]
    severity: Severity = "error"
    fallback_invariant: str | None = None
    """The invariant that it stands for where the claim does not apply."""
    fault: str = ""
    """What is wrong where it does not hold, in one sentence."""

    def __call__(self, observed: Observed) -> CheckResult:
        """Look, and say how it came out. A check that itself crashes has found something; it never passes."""
        try:
            found = list(self.function(observed))
        except NotApplicable as reason:
            return self.result("not applicable", reason=str(reason))
        except CannotTry:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the check did not hold
            found = [
                Finding(
                    expected="something that can be checked",
                    observed=f"{type(error).__name__}: {error}",
                    hint="The step left something behind that this check cannot read; compare it with the document's.",
                )
            ]
        return self.result("fails" if found else "holds", found)

    def result(self, outcome: Outcome, findings: Sequence[Finding] = (), reason: str | None = None) -> CheckResult:
        """The check's result, with its id, severity and what is wrong in the findings."""
        fault = self.fault or f"Does not hold: {self.statement}"
        named = tuple(
            replace(each, check=self.id, severity=self.severity, message=each.message or fault) for each in findings
        )
        return CheckResult(self.id, self.id.partition("::")[0], self.claim, outcome, reason, named)
