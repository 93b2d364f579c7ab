"""The loss curve of a recorded seed, trained once more: bit for bit on an equal fingerprint, within rounding elsewhere.

Other CPUs, numbers of threads and versions add up the same sums in another order. Their first losses are a rounding of
float32 apart; each update hands on what the one before it had, so that the distance grows, until the learning rate has
decayed. Dropout does not blur it where the same masks are drawn from the seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.documented_run.baseline.stored import Baseline, SeedRun, as_plain, without_seed
from harness.documented_run.recipe import RECIPES
from harness.documented_run.record import Verdict
from harness.findings import Finding, shortened

LONGEST_VALUE = 200
"""Characters of a value that is shown."""
NOT_COMPARED = ("full-training-harness", "python", "cpus")
"""Fields of a fingerprint that give no reason to expect other losses."""

ROWS = 2
"""How many rows of the validation set rounding may put on the other side of a decision. Measured: none."""

TINY = 1e-30
"""Instead of a recorded loss of 0, to divide by."""


@dataclass(frozen=True)
class Band:
    """How far apart two losses of one update may be where only rounding differs, relatively to the recorded one.

    ``floor`` up to update ``level``, then a ``power`` of the update, and never above ``ceiling``. Relatively, because
    logits that are a little off move a small loss by so much of itself.

    >>> band = Band(floor=1e-6, level=50, power=2, ceiling=1e-3)
    >>> [f"{band.at(update):.0e}" for update in (1, 50, 100, 500, 5000)]
    ['1e-06', '1e-06', '4e-06', '1e-04', '1e-03']
    """

    floor: float
    level: int
    power: float
    ceiling: float
    updates: int | None = None
    """How many updates from the first on it is known for; None: all."""

    def at(self, update: int) -> float:
        """The greatest relative distance at an update, counted from 1."""
        return min(self.ceiling, self.floor * math.pow(max(1.0, update / self.level), self.power))

    def taken(self, recorded: Sequence[float], found: Sequence[float]) -> list[float]:
        """How much of the band each update takes: more than 1 is outside, and so is a loss that is no number."""
        pairs = list(zip(recorded, found, strict=True))[: self.updates]
        taken = [relative(ours, theirs) / self.at(update) for update, (ours, theirs) in enumerate(pairs, start=1)]
        return [math.inf if math.isnan(each) else each for each in taken]


def relative(recorded: float, found: float) -> float:
    """The distance of two losses in parts of the recorded one."""
    return abs(found - recorded) / max(abs(recorded), TINY)


MEASURED = {"tiny": Band(floor=2.5e-6, level=50, power=3, ceiling=2e-3)}
"""Bands by recipe, in the plain loop: four times and more what whole runs of recorded seeds were apart on other CPUs
and with other kernels (``tests/baseline/curves_elsewhere.json``): 3.7e-7 over the first 50 updates, 4.4e-6 over 200,
and from 400 on 4.2e-4 with one seed and 6.1e-5 with the others. Another seed is 0.06 apart at the first update; an
update that changes nothing moves one of the next 60 losses by 5e-3 or more, up to update 1200 of 1377."""

EARLY = Band(floor=1e-3, level=1, power=0, ceiling=1e-3, updates=20)
"""For recipes whose rounding nobody measured: far more than rounding comes to in so few updates."""


def exact(baseline: Baseline, runs: Sequence[SeedRun], lrs: Sequence[list[float] | None]) -> Verdict:
    """The recorded seeds give the recorded curves: losses and learning rates.

    On an equal fingerprint the losses, the metrics and the weights are the same bits. On another one of the hardware
    class the losses lie within the band of rounding (:data:`MEASURED`), and the metrics within :data:`ROWS` rows; where
    no band is known that is said. The learning rates are the same bits everywhere.

    Args:
        lrs: the learning rates of each run, one an update; None where they are not known.
    """
    known = [(run, recorded, lr) for run, lr in zip(runs, lrs, strict=True) if (recorded := baseline.run(run.seed))]
    if not known:
        seeds = ", ".join(str(run.seed) for run in baseline.runs)
        return Verdict("exact", "not applicable", (f"no run has a recorded seed ({seeds})",))
    findings: list[Finding] = []
    grounds: list[str] = []
    skipped: list[str] = []
    for run, recorded, lr in known:
        if found := list(_lengths(baseline, run, recorded)) or list(_rates(baseline, run, lr)):
            findings += found
            continue
        compared = _Compared.of(baseline, run, recorded)
        findings += compared.findings
        (grounds if compared.whole else skipped).append(f"seed {run.seed}: {compared.says}")
    if findings:
        return Verdict("exact", "fails", (*grounds, *skipped), tuple(findings))
    return Verdict("exact", "holds" if grounds else "not applicable", (*grounds, *skipped))


def replays(baseline: Baseline, run: SeedRun) -> bool:
    """Whether the run is a recorded one once more, up to rounding: no further evidence of quality."""
    recorded = baseline.run(run.seed)
    if recorded is None or len(run.curve) != len(recorded.curve):
        return False
    compared = _Compared.of(baseline, run, recorded)
    return compared.whole and not compared.findings


@dataclass(frozen=True)
class _Compared:
    """What came of one seed. ``whole``: all of its updates were compared."""

    whole: bool
    says: str
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, baseline: Baseline, run: SeedRun, recorded: SeedRun) -> _Compared:
        others = differences(recorded.fingerprint, run.fingerprint)
        device = run.fingerprint["device"]
        if device != "cpu" and not run.fingerprint.get("deterministic_algorithms"):
            return cls(False, f"not compared: on {device} without deterministic algorithms, no two runs are the same")
        if not others:
            says = f"{len(run.curve)} losses and a checksum of the weights compared bit for bit"
            return cls(True, says, tuple(_bits(baseline, run, recorded)))
        there = f"on another fingerprint ({'; '.join(others[:3])})"
        if device != "cpu":
            return cls(False, f"not compared, {there}; how rounding grows on {device} was not measured")
        if not same_draws(recorded.fingerprint, run.fingerprint):
            return cls(False, f"not compared, {there}: the dropout masks differ from the first update on")
        band = band_of(baseline)
        findings = tuple(_rounding(baseline, run, recorded, band or EARLY))
        if band is None:
            says = (
                f"only the first {EARLY.updates} losses compared, {there}; how rounding grows with recipe "
                f"{baseline.recipe['name']} was not measured"
            )
            return cls(False, says, findings)
        taken = band.taken(recorded.curve, run.curve)
        most = max(range(len(taken)), key=taken.__getitem__)
        says = (
            f"{len(taken)} losses compared within rounding, {there}: {_of_the_allowed(taken[most])}, "
            f"at update {most + 1}"
        )
        return cls(True, says, findings)


def _of_the_allowed(taken: float) -> str:
    """How much of the band the largest difference takes, in words."""
    if taken <= 1:
        return f"at most {taken:.1%} of the allowed difference"
    return f"{taken:,.{0 if taken >= 10 else 1}f} times the allowed difference"


def band_of(baseline: Baseline) -> Band | None:
    """The measured band; None where the recipe is not one of those that were measured."""
    recipe = as_plain(baseline.recipe)
    band = MEASURED.get(recipe["name"])
    return band if band and recipe == without_seed(RECIPES[recipe["name"]].as_dict()) else None


def same_draws(recorded: dict[str, Any], found: dict[str, Any]) -> bool:
    """Whether a seed gives the same masks of dropout. Fingerprints of before it was kept: on the same architecture."""
    ours, theirs = recorded.get("draws"), found.get("draws")
    if ours is None or theirs is None:
        return recorded.get("machine") == found.get("machine")
    return bool(ours == theirs)


def differences(recorded: dict[str, Any], found: dict[str, Any], prefix: str = "") -> list[str]:
    """What two fingerprints do not share, one sentence for each key."""
    sentences: list[str] = []
    unknown = {"draws"} if None in (recorded.get("draws"), found.get("draws")) else set()
    for key in sorted((recorded.keys() | found.keys()) - {*NOT_COMPARED, *unknown}):
        ours, theirs = recorded.get(key), found.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            sentences += differences(ours, theirs, f"{prefix}{key}.")
        elif ours != theirs:
            there, here = shortened(str(ours), LONGEST_VALUE), shortened(str(theirs), LONGEST_VALUE)
            sentences.append(f"{prefix}{shortened(key, LONGEST_VALUE)} {there} there, {here} here")
    return sentences


def _where(baseline: Baseline, run: SeedRun, what: str) -> str:
    return f"{baseline.name}.json, seed {run.seed}, {what}"


def _lengths(baseline: Baseline, run: SeedRun, recorded: SeedRun) -> Iterator[Finding]:
    if len(run.curve) != len(recorded.curve):
        yield Finding(
            expected=f"{len(recorded.curve)} losses",
            observed=f"{len(run.curve)}",
            where=_where(baseline, run, "curve"),
            hint="The number of updates differs: look at the data, the batch size and the epochs.",
        )


def _rates(baseline: Baseline, run: SeedRun, lrs: list[float] | None) -> Iterator[Finding]:
    """They come from the recipe and the number of the update, in Python's own floats: no machine rounds otherwise."""
    if baseline.lr is None or lrs is None:
        return
    for update, (ours, theirs) in enumerate(zip(baseline.lr, lrs, strict=True), start=1):
        if ours != theirs:
            yield Finding(
                expected=f"learning rate {ours!r}",
                observed=f"{theirs!r}",
                where=f"{baseline.name}.json, lr, and seed {run.seed}",
                update=update,
                hint="A recipe's learning rates are the same on every machine: look at optimizer and schedule.",
            )
            return


def _bits(baseline: Baseline, run: SeedRun, recorded: SeedRun) -> Iterator[Finding]:
    for update, (ours, theirs) in enumerate(zip(recorded.curve, run.curve, strict=True), start=1):
        if ours != theirs:
            yield Finding(
                expected=f"loss {ours!r}",
                observed=f"{theirs!r}",
                where=_where(baseline, run, "curve"),
                update=update,
                hint="From here on, the same seed trains differently on the same machine and versions. Find out "
                "what changed. Accept a new baseline only when you know that this is not a regression.",
            )
            return
    expected, found = ({**each.metrics, "weights": each.weights} for each in (recorded, run))
    for name, value in expected.items():
        if found.get(name) != value:
            yield _other_end(baseline, name, run.seed, f"{value!r}", found.get(name))


def _rounding(baseline: Baseline, run: SeedRun, recorded: SeedRun, band: Band) -> Iterator[Finding]:
    for update, taken in enumerate(band.taken(recorded.curve, run.curve), start=1):
        if taken > 1:
            ours, theirs = recorded.curve[update - 1], run.curve[update - 1]
            yield Finding(
                expected=f"loss {ours!r}, with a relative difference of at most {band.at(update):.1e} by rounding",
                observed=f"{theirs!r}, a relative difference of {relative(ours, theirs):.1e}",
                where=_where(baseline, run, "curve"),
                update=update,
                hint="Rounding on another CPU, number of threads or version cannot explain a difference this large: "
                "the computation itself has changed, here or a little earlier.",
            )
            return
    for name in baseline.metrics if band.updates is None else ():
        ours, theirs = recorded.metrics[name], run.metrics.get(name, math.nan)
        if not abs(ours - theirs) <= ROWS / baseline.rows + 1e-12:
            yield _other_end(baseline, name, run.seed, f"{ours!r} within {ROWS} rows of {baseline.rows}", theirs)


def _other_end(baseline: Baseline, name: str, seed: int, expected: str, observed: object) -> Finding:
    return Finding(
        expected=f"{name} {expected}",
        observed=f"{observed!r}",
        where=f"{baseline.name}.json, seed {seed}, {name}",
        hint="The losses agree: the last update, the saved model or the evaluation has changed.",
    )
