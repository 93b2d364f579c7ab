"""Tries edits, and keeps those that are shown to repair what was found."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from harness import catalogue
from harness.errors import CannotTry
from harness.files import diff_lines, replaced_atomically
from harness.findings import PLACE, Finding
from harness.repairs.repair import all_repairs, candidates
from harness.repairs.trial import REPORT, TASK
from harness.settings import DEFAULTS, WatchOptions, wanted
from harness.starts.isolated import named
from harness.starts.workdir import LEAST_PATIENCE, PATIENCE, Command, Scratch, Workdir, no_progress, scratch
from harness.watch.running import readable_script
from harness.watch.script import CheckReport, Patch

Files = Mapping[str, bytes]
"""Files below the working directory by their names."""

MEANT = "it is a warning, and may be what you meant"
NEW = "this check is new, and may be wrong"
"""Why a warning is not repaired."""


def _check(workdir: Workdir, options: WatchOptions, timeout: float) -> CheckReport | str:
    """What ``harness check`` says of the script in a copy; why it says nothing, where it does not."""
    orders = workdir.orders(check=asdict(options), task=TASK)
    start = workdir.start(orders, timeout)
    file = Path(orders.folder, REPORT)
    if file.exists():
        report: CheckReport = TypeAdapter(CheckReport).validate_json(file.read_bytes())
        return report
    lines = [line for line in start.stderr.splitlines() if line.strip()]
    return f"it takes more than {timeout:.0f} s" if start.timed_out else (lines or ["it ended without a message"])[-1]


@dataclass
class Bench:
    """Where edits are tried: isolated working directories."""

    scratch: Scratch
    command: Command
    options: WatchOptions
    tell: Callable[[str], None]
    """Gets a line for each edit that was tried."""
    begins: Callable[[str], None] = no_progress
    """Gets a line for each edit that is about to be tried."""

    def __post_init__(self) -> None:
        self.number = 0
        self.folder = Path.cwd()
        self.begun = time.time_ns()
        """When the script was about to be run."""

    def run(self, files: Files, seconds: float) -> CheckReport | str:
        """What is found in the script with other text in some of its files; ``seconds`` is how long it took before."""
        self.number += 1
        workdir = self.scratch.workdir(self.number, self.command)
        try:
            for name, data in files.items():
                workdir.put(name, data)
            found = _check(workdir, self.options, max(LEAST_PATIENCE, PATIENCE * seconds))
            return named(found, workdir.real)
        finally:
            workdir.remove()

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where it is not the working directory's own."""
        path, own = self.folder / name, self.folder.resolve()
        return path.read_bytes() if path.is_file() and path.resolve() == own / name else None


WASTE = frozenset({"memory::graphs-kept", "mode::evaluation-with-graph"})
"""Warnings of what costs memory and time: nobody means it, so that it is repaired as errors are."""


@contextmanager
def bench(
    script: str,
    arguments: Sequence[str] = (),
    options: WatchOptions = DEFAULTS,
    *,
    tell: Callable[[str], None] = no_progress,
    begins: Callable[[str], None] = no_progress,
) -> Iterator[Bench]:
    """A bench for a script that is about to be run by :func:`harness.watch.script.check_script` with these options.

    ``tell`` gets a line for each edit that was tried, ``begins`` one for each that is about to be.

    Raises:
        CannotTry: there is no such script, or a check that is named does not exist.
    """
    chosen = wanted(None if options.module else readable_script(script), options.select, options.ignore)
    resolved = replace(options, select=tuple(sorted(chosen.selected)), ignore=tuple(sorted(chosen.ignored)))
    with scratch("harness-check-") as given:
        yield Bench(given, Command(script, tuple(arguments), options.module), resolved, tell, begins)


@dataclass
class Proved:
    """A patch for each finding, and the files with all of them."""

    report: CheckReport
    """What is found with all of them."""
    begun: int = field(default_factory=time.time_ns)
    """When the script was about to be run."""
    patches: list[Patch] = field(default_factory=list)
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)

    @property
    def diff(self) -> str:
        return "".join(_diff(name, self.before[name], self.after[name]) for name in sorted(self.after))

    def write(self) -> None:
        """Write the files.

        Raises:
            CannotTry: one of them has been changed since it was read, or cannot be written.
        """
        for name, data in self.before.items():
            with suppress(OSError):
                if Path(name).read_bytes() == data and os.stat(name).st_mtime_ns <= self.begun:
                    continue
            raise CannotTry(f"{name} has been changed since it was run; nothing was written: check it again")
        for name, data in self.after.items():
            try:
                with replaced_atomically(Path(name).resolve()) as file:
                    file.write(data)
            except OSError as error:
                raise CannotTry(f"{name} cannot be written ({error.strerror}); it is as it was") from error


def prove(on: Bench, report: CheckReport, again: CheckReport | None = None) -> Proved:
    """Patches for what was found, each proved on top of those before it.

    ``again`` is what is found in a copy of the working directory, which edits are compared with; without it the script
    is first run so.
    """
    proved, known = Proved(report, on.begun), all_repairs()
    now: CheckReport | str = again or report
    to_repair = [
        each for each in report.findings if each.check in known and (each.severity == "error" or each.check in WASTE)
    ]
    if again is None and to_repair:
        runs = sum(len(_edits(on, each)) for each in to_repair)
        each_takes = f"about {report.seconds['in all']:.0f} s"
        tried = f", and once for each edit: up to {runs} more runs of {each_takes} each" if runs else ""
        on.tell(f"running it again, which takes {each_takes}{tried}")
        now = on.run({}, report.seconds["in all"])
    for finding in report.findings:
        if isinstance(now, CheckReport) and (patched := _gone_with(finding.check, now, proved)) is not None:
            if finding.check in (*now.held, *known[patched].quiets):
                patch = Patch(finding.check, gone_with=patched)
            else:
                patch = Patch(finding.check, why=f"the patch of {patched} leaves nothing for it to judge")
        elif finding.severity == "warning" and finding.check not in WASTE:
            fault = catalogue.checks().get(finding.check)
            patch = Patch(finding.check, why=NEW if fault is not None and fault.new_since else MEANT)
        elif finding.check not in known:
            patch = Patch(finding.check, why="no automatic repair is known for it")
        elif isinstance(now, str) or now.crashed is not None:
            says = now if isinstance(now, str) else str(now.crashed).splitlines()[-1]
            patch = Patch(finding.check, why=f"the script fails in a copy of the working directory: {says}")
        else:
            patch, now = _patch(on, finding.check, now, proved)
            proved.report = now
        proved.patches.append(patch)
    return proved


def _gone_with(check: str, now: CheckReport, proved: Proved) -> str | None:
    """The check of the latest patch, where what another one found is not found with it any more."""
    repaired = [each.check for each in proved.patches if each.diff is not None]
    gone = all(each.check != check for each in now.findings)
    return repaired[-1] if repaired and gone else None


def _edits(on: Bench, finding: Finding) -> list[bytes]:
    """The edits that may be tried for a finding in the file as it is."""
    place = PLACE.fullmatch(finding.where or "")
    data = on.read(place["file"]) if place else None
    return [] if data is None else list(candidates(data, finding))


def _patch(on: Bench, check: str, now: CheckReport, proved: Proved) -> tuple[Patch, CheckReport]:
    """The first edit that is proved; and what is found with it, or without any."""
    finding = next((each for each in now.findings if each.check == check), None)
    if finding is None:
        return Patch(check, why="it is not found when the script runs again"), now
    if finding.explained_by is not None:  # an edit could only hide what its cause does
        return Patch(check, why=f"it may follow from {finding.explained_by}: repair that first"), now
    place = PLACE.fullmatch(finding.where or "")
    name = place["file"] if place else ""
    begun = on.read(name) if name else None
    if begun is None:
        return Patch(check, why=f"{name or 'its place'} is not a file in the working directory"), now
    before = proved.after.get(name, begun)
    objections: list[str] = []
    edits = list(candidates(before, finding))
    for number, edited in enumerate(edits, start=1):
        if _overlap(begun, before, edited):
            objections.append("it overlaps with an earlier patch")
            continue
        on.begins(f"edit {number} of {len(edits)} for {check}: about {now.seconds['in all']:.0f} s …")
        after = on.run(proved.after | {name: edited}, now.seconds["in all"])
        objection = _objection(check, now, after)
        on.tell(f"tried an edit for {check}: {objection or 'repaired'}")
        if objection is None:
            assert isinstance(after, CheckReport)
            proved.before.setdefault(name, begun)
            proved.after[name] = edited
            return Patch(check, name, _diff(name, before, edited)), after
        objections.append(objection)
    if not objections:
        return Patch(check, why="no known edit for it fits this script"), now
    count = f"{len(objections)} edit{'s' * (len(objections) > 1)} tried"
    return Patch(check, why=f"{count}, none of them worked: {objections[0]}"), now


def _objection(check: str, before: CheckReport, after: CheckReport | str) -> str | None:
    """Why an edit is no repair; None where it is one."""
    if isinstance(after, str):
        return after
    if after.crashed is not None:
        return f"the script crashes: {after.crashed.splitlines()[-1]}"
    found, new = _found(after), sorted(_found(after) - _found(before))
    if check in found:
        return "it does not help: the finding is still there"
    if new:
        return f"{', '.join(new)} is found with it"
    lost = sorted(({check} | set(before.held)) - set(after.held) - set(all_repairs()[check].quiets))
    if lost:
        return f"with it, nothing is left for {', '.join(lost)} to judge"
    if {each.check for each in after.not_looked_at} - {each.check for each in before.not_looked_at}:
        return "a check crashes with it"
    return "the script makes fewer updates with it" if after.updates < before.updates else None


def _found(report: CheckReport) -> set[str]:
    return {*(each.check for each in report.findings), *report.ignored}


def _overlap(begun: bytes, before: bytes, after: bytes) -> bool:
    """Whether an edit touches lines that the edits before it have made."""
    lines = [each.splitlines() for each in (begun, before, after)]
    made = {at for kind, _, _, first, last in _changes(lines[0], lines[1]) for at in range(first, last)}
    return any(made & set(range(first, last)) for kind, first, last, _, _ in _changes(lines[1], lines[2]))


def _changes(one: Sequence[bytes], other: Sequence[bytes]) -> list[tuple[str, int, int, int, int]]:
    found = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [each for each in found if each[0] != "equal"]


def _diff(name: str, before: bytes, after: bytes) -> str:
    return "".join(diff_lines(_text(before), _text(after), Path(name).as_posix()))


def _text(data: bytes) -> str:
    import libcst as cst

    return data.decode(cst.parse_module(data).encoding)
