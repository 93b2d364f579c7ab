"""The same training, done otherwise: with other arguments, or in several processes, it has to take the same steps."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harness import launch
from harness.baseline.trainings import Crashed, described, distance_between
from harness.describe.description import Description
from harness.describe.updates import UNCLIPPED
from harness.findings import Report, strict
from harness.settings import Training, Way

ROUNDING = {"loss": (1e-3, 5e-4), "gradient_norm": (5e-2, 2.5e-2), UNCLIPPED: (5e-2, 2.5e-2)}
"""Kind of number to how far apart two runs may be in float32, as a share: in any update, and in the mean over them. In
TRL's runs in float32 losses were at most 1.9e-4 apart and norms 3.2e-2 (huggingface/trl#5844)."""

HALF_PRECISION_FACTOR = 16.0
"""How many times as far in half precision."""

UNSPLIT_FACTS = re.compile(
    r"schedule\..*\.(first|largest|last|largest_at|course)|update\..*\.(steps|clipped|skipped|stale|empty)"
    r"|optimizer\..*\.(tensors|elements|lr|betas|eps|weight_decay|momentum|nesterov|in_none)"
)
"""Facts that are the same however a batch is split."""

STEPS = re.compile(r"update\..*\.steps")

COUNTED = re.compile(r"loss\..*\.counted")
"""What one process sees all of."""

RANDOM = re.compile(r"model\..*\.training\.active")
"""Modules of dropout or batch statistics that were active: they come out otherwise for each batch and rank."""

MOST_TIMES = 64
"""The largest factor that is named."""

NEAR_FACTOR = 0.02
"""How near it must be, as a share."""


@dataclass(frozen=True)
class Apart:
    """A number, or a fact, that is another one."""

    key: str
    first: Any
    other: Any
    update: int | None = None
    """The first update in which a number is too far away."""
    times: str | None = None
    """What it is a multiple of the first by: "2", or "1/4"; None where it is none."""
    largest: float | None = None
    """The largest distance of a number, as a share."""


@dataclass
class WayReport:
    """How one way to start a training compares with its own command."""

    way: str
    apart: list[Apart] = field(default_factory=list)
    largest: dict[str, float] = field(default_factory=dict)
    """Number to the largest distance over the updates, as a share."""
    updates: int = 0
    """Updates in which numbers were compared."""
    not_judged: list[str] = field(default_factory=list)
    """What cannot be the same, and why."""
    hint: str | None = None
    """What may make it another training, and what to do."""


@dataclass
class SameTrainingReport(Report):
    """How the ways to start one training compare with its own command."""

    kind: ClassVar[str] = "same-training"
    name: str
    command: str
    ways: list[WayReport] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return strict(super().as_dict())

    @property
    def failed(self) -> bool:
        return any(each.apart for each in self.ways)


def same_training(training: Training, folder: Path) -> SameTrainingReport:
    """Run a training, and run it in each of the ways in which it has to be the same.

    Raises:
        CannotTry: one of them could not be run, crashed, or made no update.
    """
    first = _first(training, folder)
    ways = [compared(first, described(training, folder, way=way), way) for way in training.same_as]
    return SameTrainingReport(training.name, shlex.join(training.command), ways)


def _first(training: Training, folder: Path) -> Description:
    """The run that the others are compared with: in one process, which a launcher starts where the script wants one."""
    try:
        return described(training, folder)
    except Crashed as crashed:
        if not launch.wants_a_launcher(crashed.traceback):
            raise
        return described(training, folder, way=Way(processes=1))


def compared(first: Description, other: Description, way: Way) -> WayReport:
    """How two runs compare that have to take the same steps: settings exactly, losses and norms within rounding."""
    found = WayReport(str(way), apart=list(_facts(first, other, way)))
    found.hint = _hint(found.apart, way)
    if any(RANDOM.match(key) and any(value) for run in (first, other) for key, value in run.facts.items()):
        found.not_judged.append(
            "losses and norms: dropout or batch statistics were active in training, and they depend on how rows are "
            "batched; for this comparison, set dropout to 0 or leave batch statistics out"
        )
        return found
    for key, values in first.numbers.items():
        kind = key.partition(".")[0]
        if kind not in ROUNDING:
            continue
        others = other.numbers.get(key, [])
        if not others or not any(values) or not all(map(math.isfinite, values)):
            how = "0 or not finite in the run itself, which proves nothing" if others else "not in the other run"
            found.not_judged.append(f"{key}: {how}")
        else:
            if kind == "loss":  # the last of it is that of one backward pass alone
                values, others = values[:-1], others[:-1]
            found.updates = max(found.updates, min(len(values), len(others)))
            distances = _distances(values, others)
            found.largest[key] = max(distances, default=0.0)
            if each := _apart(key, values, others, distances, HALF_PRECISION_FACTOR if _is_half(first) else 1.0):
                found.apart.append(each)
    return found


def _facts(first: Description, other: Description, way: Way) -> Iterator[Apart]:
    one, two = first.facts, other.facts
    for key in one:
        compares = UNSPLIT_FACTS.fullmatch(key) or (way.processes is None and COUNTED.fullmatch(key))
        if compares and key in two and one[key] != two[key]:
            yield Apart(key, one[key], two[key])


def _hint(apart: Sequence[Apart], way: Way) -> str | None:
    """What to do where several processes make so many times fewer updates, because each takes batches of its own."""
    steps = [each for each in apart if STEPS.fullmatch(each.key)]
    if way.processes is None or not any(each.other * way.processes == each.first for each in steps):
        return None
    return (
        f"each of the {way.processes} processes reads full batches of its own, so each update uses {way.processes} "
        f"times as many rows. If the script has an argument for the batch size, make it {way.processes} times "
        "smaller (--args-b '--batch 4', or same-as of [[tool.harness.training]])"
    )


def _distances(values: Sequence[float], others: Sequence[float]) -> list[float]:
    scale = max(map(abs, values), default=0.0) or 1.0
    return [distance_between(one, other, scale) for one, other in zip(values, others, strict=False)]


def _apart(
    key: str, values: Sequence[float], others: Sequence[float], distances: Sequence[float], times: float
) -> Apart | None:
    largest, mean = (times * each for each in ROUNDING[key.partition(".")[0]])
    too_far = [place for place, each in enumerate(distances) if each > largest]
    if not too_far and not sum(distances) > mean * len(distances):
        return None
    place = too_far[0] if too_far else 0
    factor = _factor(values[place], others[place])
    return Apart(key, values[place], others[place], place + 1, factor, max(distances))


def _factor(one: float, other: float) -> str | None:
    """What the other is a multiple of the one by, where that is a whole number or a fraction of one."""
    if not one or not other or not 0 < other / one < math.inf:
        return None
    share = other / one
    whole = round(max(share, 1 / share))
    if not 2 <= whole <= MOST_TIMES or abs(max(share, 1 / share) / whole - 1) > NEAR_FACTOR:
        return None
    return str(whole) if share > 1 else f"1/{whole}"


def _is_half(run: Description) -> bool:
    """Whether anything was computed in half precision."""
    return any(
        "float16" in str(value) or "bfloat16" in str(value)
        for key, value in run.facts.items()
        if key.startswith("model.") and key.endswith((".types", ".autocast"))
    )
