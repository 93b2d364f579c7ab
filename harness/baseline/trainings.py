"""The baseline of a training: what a script of one's own did, one fact a line, and whether it still does it."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter

from harness.baseline import training_file
from harness.baseline.formerly import not_kept
from harness.baseline.pairing import MODEL, Pairs, pairs
from harness.baseline.rows import sentences
from harness.baseline.settings_table import SETTINGS, settings_lines
from harness.baseline.training_file import NUMBERS, VARIES, StoredTraining, section_of, sections
from harness.describe.description import Description
from harness.describe.lines import BITS
from harness.errors import CannotTry
from harness.findings import Finding, Report, errors_of, strict
from harness.fingerprint import fingerprint, git
from harness.settings import Training, Way
from harness.starts.workdir import no_progress
from harness.watch.scripts import run_apart

OTHERWISE = {"PYTHONHASHSEED": "4711", "OMP_NUM_THREADS": "1"}
"""Environment variables that a run has otherwise that must do the same."""

BEHAVIOUR_RTOL = 1e-3
"""How near two real numbers of the behaviour must be, as a share of the larger: another machine rounds otherwise."""

MARGIN = 4.0
"""How many times the noise that was measured a number may be away."""

LEAST_NOISE = 1e-5
"""Share of a number that counts as noise in any case: three recordings need not meet the worst of another machine."""

SLOW = 60.0
"""Seconds of a run above which a training is slow for a test."""

SAME_MACHINE = ("python", "libraries", "device", "device_name", "cpu", "cpu_capability", "threads")
"""Fields of the fingerprint that must be equal for numbers to be compared bit for bit."""


@dataclass(frozen=True)
class Changed:
    """A fact that is no longer so."""

    key: str
    was: Any
    now: Any
    """None where it is gone."""

    @property
    def section(self) -> str:
        return section_of(self.key)


@dataclass
class TrainingVerdict:
    """How a training compares with its baseline."""

    name: str
    changed: dict[str, list[Changed]] = field(default_factory=dict)
    """Section to what changed in it, in causal order."""
    says: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Section to the lines of the page that changed, as they were and as they are, each with newlines between them."""
    where: dict[str, str] = field(default_factory=dict)
    """Section to the user's line."""
    lane: str = ""
    """How numbers were compared, or why not."""
    findings: list[Finding] = field(default_factory=list)
    """Errors that the checks found in the run."""
    renamed: list[str] = field(default_factory=list)
    """What is called otherwise and is the same: no difference."""
    ignored: list[str] = field(default_factory=list)
    """Facts and numbers that differ, and that pyproject.toml ignores."""
    first_loss: tuple[float, float] | None = None
    """The loss of the first update, as it was and as it is."""
    rows: dict[str, str] = field(default_factory=dict)
    """What is otherwise with rows, where digests of them have changed: the start of the facts' keys to a sentence."""
    facts: int = 0
    """How many facts the run had."""
    numbers_compared: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.changed or self.findings)


@dataclass
class TrainingsReport(Report):
    """How trainings compare with their baselines."""

    kind: ClassVar[str] = "trainings"
    trainings: list[TrainingVerdict] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    """Baselines of trainings that pyproject.toml no longer names."""

    def as_dict(self) -> dict[str, Any]:
        return strict(super().as_dict())

    @property
    def failed(self) -> bool:
        return bool(self.left_over) or any(each.failed for each in self.trainings)


class Crashed(CannotTry):
    """A training ended with an exception, with its traceback."""

    def __init__(self, why: str, traceback: str) -> None:
        super().__init__(why)
        self.traceback = traceback


def described(
    training: Training, folder: Path, env: Mapping[str, str] | None = None, way: Way | None = None
) -> Description:
    """Run a training, unshortened and in a process of its own, and say what it did.

    Raises:
        CannotTry: it could not be run, crashed, or made no update.
    """
    way = way or Way()
    options = ["--full", "--quiet", *([f"--processes={way.processes}"] if way.processes else [])]
    command = [*training.command, *way.arguments]
    ran = run_apart(["describe", *options], command, cwd=folder, env={**os.environ, **(env or {})})
    if ran.written is None:
        raise CannotTry(f"training {training.name} could not be run: {ran.last_words}")
    found = TypeAdapter(Description).validate_json(ran.written)
    if found.crashed is not None:
        why = f"training {training.name} crashed after {found.updates} updates: {ran.last_words}"
        raise Crashed(why, found.crashed)
    if not found.updates or not found.numbers:
        raise CannotTry(f"training {training.name} made no update in its process, so there is nothing to compare")
    return found


def record(
    training: Training, folder: Path, first: Description | None = None, tell: Callable[[str], None] = no_progress
) -> tuple[StoredTraining, Description]:
    """Run a training twice, and keep what it did and how far apart its numbers are.

    The second time strings hash otherwise and torch has one thread. Where the two differ by more than rounding, a third
    run, as the first, shows more of what varies. ``first`` is a run that was made already.

    Raises:
        CannotTry: as :func:`described`; or a check finds an error, which no baseline blesses.
    """
    if first is None:
        tell(f"{training.name}: run 1 of 2 (of 3 if they differ)")
    runs = [first or described(training, folder)]
    if errors := errors_of(runs[0].findings):
        raise CannotTry(
            f"training {training.name} is not recorded: {error_line(errors[0])}; a baseline never accepts an error"
        )
    tell(f"{training.name}: run 2, with one thread and another PYTHONHASHSEED, about {runs[0].seconds:.0f} s")
    runs.append(described(training, folder, OTHERWISE))
    if _differ(*runs):
        tell(f"{training.name}: run 3, because the first two differ")
        runs.append(described(training, folder))
    facts = {
        key: value if all(key in run.facts and _alike(key, value, run.facts[key]) for run in runs[1:]) else VARIES
        for key, value in runs[0].facts.items()
    }
    noise = {
        key: _apart(values, [run.numbers.get(key, []) for run in runs[1:]]) for key, values in runs[0].numbers.items()
    }
    command = shlex.join(training.command)
    stored = StoredTraining(
        command, commit_of(folder), fingerprint(), facts, says_of(runs[0]), dict(runs[0].numbers), noise
    )
    if training.settings:
        tell(f"{training.name}: each setting, about ten times the {runs[0].seconds:.0f} s of a run")
        table = replace(runs[0], lines=settings_lines(training, folder))
        stored.facts |= table.facts
        stored.says |= says_of(table)
    return stored, runs[0]


def _differ(one: Description, other: Description) -> bool:
    """Whether two runs of one script differ by more than rounding."""
    facts = {**one.facts, **other.facts}
    if any(key not in one.facts or key not in other.facts for key in facts):
        return True
    if not all(_alike(key, one.facts[key], other.facts[key]) for key in facts):
        return True
    return any(_apart(values, [other.numbers.get(key, [])])[0] > BEHAVIOUR_RTOL for key, values in one.numbers.items())


def compare(training: Training, folder: Path, stored: StoredTraining, observed: Path | None = None) -> TrainingVerdict:
    """Run a training, and compare it with its baseline. What it did is written to ``observed``, as a baseline is.

    Raises:
        CannotTry: as :func:`described`; or the baseline is of another command.
    """
    command = shlex.join(training.command)
    if stored.command != command:
        raise CannotTry(
            f"the baseline of training {training.name} was recorded with {stored.command!r}, but pyproject.toml "
            f"says {command!r}; record it again with harness baseline record {training.name}"
        )
    now = with_settings(training, folder, stored)
    if observed is not None:
        training_file.write(observed, _observed(stored, now, folder), training.name)
    return verdict(training.name, stored, now, ignore=training.ignore, tolerance=training.tolerance)


def with_settings(training: Training, folder: Path, stored: StoredTraining) -> Description:
    """What a training does now, with the table of its settings if it is wanted; without, that of the baseline goes."""
    now = described(training, folder)
    if training.settings:
        now.lines += settings_lines(training, folder)
    else:
        take(stored, now, [SETTINGS])
    return now


def _observed(stored: StoredTraining, now: Description, folder: Path) -> StoredTraining:
    """What a run did as the baseline would have it, so that only what differs does so in the two files."""
    varying = {key for key, value in stored.facts.items() if value == VARIES}
    facts = {key: VARIES if key in varying else value for key, value in now.facts.items()}
    return replace(
        stored,
        commit=commit_of(folder),
        fingerprint=fingerprint(),
        facts=facts,
        says=says_of(now),
        numbers=dict(now.numbers),
    )


def verdict(
    name: str,
    stored: StoredTraining,
    now: Description,
    machine: Mapping[str, Any] | None = None,
    *,
    ignore: Sequence[str] = (),
    tolerance: Mapping[str, float] | None = None,
) -> TrainingVerdict:
    """How a run compares with a baseline: its behaviour exactly, its numbers as far as the machine allows.

    The numbers are compared where the behaviour differs, too: a change that is meant may hide another one in them.

    ``ignore`` are patterns of facts and numbers that do not count, ``tolerance`` says of patterns how far apart they
    may be, as a share of the larger; of several that match the first counts.
    """
    machine = machine or fingerprint()
    paired = pairs(stored.facts, now.facts)
    now = paired.as_before(now)
    facts, same = now.facts, is_same_machine(stored, machine)
    found = TrainingVerdict(name, findings=errors_of(now.findings), renamed=paired.notes, facts=len(facts))

    def alike(key: str) -> bool:
        rtol = _tolerated(key, tolerance or {})
        return _alike(
            key, stored.facts[key], facts[key], BEHAVIOUR_RTOL if rtol is None else rtol, whole=rtol is not None
        )

    changed = [
        *renamed_classes(paired),
        *(
            Changed(key, stored.facts.get(key), facts.get(key))
            for key in {**stored.facts, **facts}
            if stored.facts.get(key) != VARIES
            and (same or not key.endswith(BITS))
            and not not_kept(stored.facts, key)
            and not (key in stored.facts and key in facts and alike(key))
        ),
    ]
    device, here = stored.fingerprint.get("device"), machine.get("device")
    numbers: list[Changed] = []
    found.numbers_compared = device == here
    found.lane = f"numbers were not compared: they were recorded on {device}, and this run used {here}"
    if found.numbers_compared:
        numbers, found.lane = _numbers(stored, now, same, tolerance or {})
    found.ignored = [each.key for each in (*changed, *numbers) if _matches(each.key, ignore)]
    changed = [each for each in changed if each.key not in found.ignored]
    says = says_of(now)
    for section in sections():
        if of_it := [each for each in changed if each.section == section]:
            found.changed[section] = of_it
            was = [stored.says[each.key] for each in of_it if each.key in stored.says]
            is_now = [says[each.key] for each in of_it if each.key in says]
            found.says[section] = "\n".join(dict.fromkeys(was)), "\n".join(dict.fromkeys(is_now))
            places = [line.where for line in now.lines if line.where and any(e.key in line.facts for e in of_it)]
            found.where |= {section: places[0]} if places else {}
    found.rows = sentences([each.key for each in changed], stored.facts, facts)
    losses = stored.numbers.get("loss"), now.numbers.get("loss")
    found.first_loss = (losses[0][0], losses[1][0]) if losses[0] and losses[1] else None
    if numbers := [each for each in numbers if each.key not in found.ignored]:
        found.changed[NUMBERS] = numbers
    return found


def _matches(key: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def _tolerated(key: str, tolerance: Mapping[str, float]) -> float | None:
    """How far apart a fact or number may be, as a share; None where nobody says."""
    return next((share for pattern, share in tolerance.items() if fnmatchcase(key, pattern)), None)


def renamed_classes(paired: Pairs) -> Iterator[Changed]:
    """Classes that are others and count: of a model of other shapes, or of an optimizer."""
    for part in paired.counting:
        section = "model" if part.kind == MODEL else "optimizer"
        loop = f"{part.loop}." if part.loop else ""
        yield Changed(f"{loop}{section}.{part.was}.class", part.was, part.now)


def error_line(finding: Finding) -> str:
    """An error in one line."""
    return f"{finding.check} at {finding.where}: {finding.observed}"


def says_of(run: Description) -> dict[str, str]:
    """Fact to the line of the page that says it."""
    return {key: line.text for line in run.lines if line.text for key in line.facts}


def _alike(key: str, one: Any, other: Any, rtol: float = BEHAVIOUR_RTOL, *, whole: bool = False) -> bool:
    """Whether two values of a fact are the same; real numbers, or with ``whole`` all, may differ by ``rtol``."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _alike(key, one[each], other[each], rtol, whole=whole) for each in one
        )
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_alike(key, *pair, rtol, whole=whole) for pair in pairs)
    kinds = {type(one), type(other)}
    if kinds <= {int, float} and (whole or float in kinds):
        # The mean of inputs is near 0 where they are normalised, and then rounding is all of it.
        least = BEHAVIOUR_RTOL if key.endswith(".mean") else 0.0
        return math.isclose(one, other, rel_tol=rtol, abs_tol=least) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _apart(values: Sequence[float], others: Sequence[Sequence[float]]) -> list[float]:
    """The largest and the mean distance of numbers from those of other runs, as a share of the largest of them."""
    scale = max((abs(each) for each in values if math.isfinite(each)), default=0.0) or 1.0
    pairs = [pair for other in others for pair in zip(values, other, strict=False)]
    apart = [distance_between(one, two, scale) for one, two in pairs] or [0.0]
    return [max(apart), sum(apart) / len(apart)]


def distance_between(one: float, other: float, scale: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    return abs(one - other) / scale if math.isfinite(one - other) else math.inf


def is_same_machine(stored: StoredTraining, machine: Mapping[str, Any]) -> bool:
    """Whether a machine computes the bits of the one that a baseline was recorded on."""
    return all(stored.fingerprint.get(each) == machine.get(each) for each in SAME_MACHINE)


def _numbers(
    stored: StoredTraining, now: Description, same: bool, tolerance: Mapping[str, float]
) -> tuple[list[Changed], str]:
    """The numbers that are too far away, on the same machine or another, and how they were compared."""
    changed = []
    exact = same and not any(each[0] for each in stored.noise.values())
    for key, values in stored.numbers.items():
        given = now.numbers.get(key, [])
        if len(given) != len(values):
            changed.append(Changed(f"{NUMBERS}.{key}", values, given or None))
            continue
        largest, mean = (MARGIN * max(each, LEAST_NOISE) for each in stored.noise.get(key, [0.0, 0.0]))
        apart = _apart(values, [given])
        if (tolerated := _tolerated(f"{NUMBERS}.{key}", tolerance)) is not None:
            if apart[0] > tolerated:
                changed.append(Changed(f"{NUMBERS}.{key}", values, given))
        elif apart[0] > 0 if exact else (apart[0] > largest or apart[1] > mean):
            changed.append(Changed(f"{NUMBERS}.{key}", values, given))
    lane = "bit for bit, on the machine of the recording" if exact else "within the noise of the recordings"
    if any(_tolerated(f"{NUMBERS}.{key}", tolerance) is not None for key in stored.numbers):
        lane += ", and within the tolerance of pyproject.toml where it names one"
    return changed, f"numbers were compared {lane}"


def first_update(changed: Changed) -> int | None:
    """The first update whose number is another, counted from 1; the last of the numbers is that of the last update."""
    if not isinstance(changed.was, list) or not isinstance(changed.now, list):
        return None
    pairs = enumerate(zip(changed.was, changed.now, strict=False), start=1)
    return next((place for place, (one, other) in pairs if distance_between(one, other, 1.0) > 0), None)


def take(stored: StoredTraining, now: Description, taken: Sequence[str]) -> None:
    """Take what a run did in sections of its behaviour into a baseline."""
    for section in taken:
        facts = {key: value for key, value in stored.facts.items() if section_of(key) != section}
        varying = {key for key, value in stored.facts.items() if value == VARIES}
        stored.facts = facts | {
            key: VARIES if key in varying else value for key, value in now.facts.items() if section_of(key) == section
        }
        said_now = {key: text for key, text in says_of(now).items() if section_of(key) == section}
        stored.says = {key: text for key, text in stored.says.items() if section_of(key) != section} | said_now


def commit_of(folder: Path) -> str | None:
    """The commit of the checkout that a folder is in; None outside of one."""
    return git(folder, "rev-parse", "--short=12", "HEAD")
