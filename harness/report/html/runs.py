"""Run records as the page shows them: documented beside observed, curves, metrics, and several runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.documented_run.baseline.compare import alpha, baseline_of, comparable, spread_of
from harness.documented_run.baseline.curve import EARLY, band_of, same_draws
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.claims import RESULT, TRAINER_RESULT, Claim, Invariant
from harness.documented_run.record import RunRecord, Verdict
from harness.errors import CannotTry
from harness.findings import CheckOutcome, Finding, shortened
from harness.report.html import curves, findings
from harness.report.html.curves import Chart, CurveBand, Mark, Series

if TYPE_CHECKING:
    from harness.compare.differences import CompareReport

LONGEST_VALUE = 200
"""Characters of a documented value that are shown."""

SAMPLES = 12
"""Updates whose figures are a table below the curves."""


WORST_FIRST = ("fails", "warns", "holds", "not applicable")


@dataclass(frozen=True)
class Statement:
    """What the documents say, or must hold for another reason, beside what came of it."""

    check: CheckOutcome
    outcome: str
    """Outcome of the check; "warns" where what it found are warnings."""
    sentence: str
    where: str = ""
    """The section and the documents; none of an invariant."""
    words: str = ""
    documented: str = ""
    observed: str = ""


@dataclass(frozen=True)
class StageView:
    """The statements of one stage."""

    name: str
    seconds: float | None
    statements: tuple[Statement, ...]

    def count(self, outcome: str) -> int:
        return sum(each.outcome == outcome for each in self.statements)

    @property
    def empty(self) -> bool:
        """Whether nothing in it was checked."""
        return self.count("not applicable") == len(self.statements)


@dataclass(frozen=True)
class MetricView:
    """A metric beside those of the recorded seeds."""

    name: str
    value: float
    recorded: tuple[float, ...] = ()
    mean: float = 0.0
    deviation: float = 0.0
    interval: tuple[float, float] | None = None
    """Where a run of the recorded quality lies; None where the baseline cannot say."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The ends of the axis that it is drawn on."""

    def at(self, value: float) -> float:
        """The place of a value on the axis, in percent."""
        low, high = self.scale
        return 100 * min(1.0, max(0.0, (value - low) / ((high - low) or 1.0)))

    @property
    def dots(self) -> list[tuple[float, int]]:
        """The recorded seeds: the place of each, and how many are below it because they are as good as there."""
        places = sorted(self.at(value) for value in self.recorded)
        return [(place, sum(place - other < 1 for other in places[:number])) for number, place in enumerate(places)]


@dataclass(frozen=True)
class RunView:
    """One run, the baseline that it belongs to, and where they part."""

    path: Path
    record: RunRecord
    baseline: Baseline | None
    why_none: str | None
    """Why there is no baseline."""

    @property
    def name(self) -> str:
        recipe = self.record.recipe
        processes = recipe.get("processes", 1)
        several = f" in {processes} processes" if processes > 1 else ""
        return f"{recipe.get('name')}, {recipe.get('loop')} loop{several}, seed {recipe.get('seed')}"

    @property
    def warns(self) -> bool:
        return bool(self.record.findings) or self.record.interrupted

    @property
    def says(self) -> str:
        """The run in one sentence."""
        outcomes = [check.outcome for check in self.record.checks]
        hold, fail = outcomes.count("holds"), outcomes.count("fails")
        parts = ["the record contradicts itself"] if self.record.contradictions else []
        parts.append(f"{hold} of {hold + fail} checks passed")
        if self.record.interrupted:
            parts.append("interrupted")
        failed = [each.comparison for each in self.comparison if each.outcome == "fails"]
        parts += [f"{'same-seed' if each == 'exact' else each} comparison fails" for each in failed]
        planned = self.record.updates_planned
        parts.append(f"{self.record.updates} of {planned} updates" if planned else f"{self.record.updates} updates")
        parts += [f"{name} {value:.4f}" for name, value in self.record.metrics.items()]
        return ", ".join(parts)

    @property
    def about(self) -> str:
        """Versions, machine and day."""
        fingerprint = self.record.fingerprint
        libraries = fingerprint.get("libraries", {})
        parts = [f"{name} {libraries[name]}" for name in ("transformers", "torch", "accelerate") if libraries.get(name)]
        parts += [str(fingerprint.get("device_name") or fingerprint.get("cpu") or fingerprint.get("device", ""))]
        return ", ".join(filter(None, [*parts, self.record.started]))

    @cached_property
    def comparison(self) -> list[Verdict]:
        """What fails first."""
        return sorted(self.record.comparison, key=lambda each: WORST_FIRST.index(each.outcome))

    @cached_property
    def findings(self) -> list[findings.Shown]:
        compared = [finding for verdict in self.record.comparison for finding in verdict.findings]
        return findings.of_run([*self.record.findings, *compared])

    @cached_property
    def stages(self) -> list[StageView]:
        """Stages in which something failed first, then the others in order."""
        known = _statements()
        found = {each.check: each for each in self.record.findings}
        views = [
            StageView(
                name,
                self.record.seconds.get(name),
                tuple(sorted((self._statement(check, known, found.get(check.check)) for check in checks), key=_worst)),
            )
            for name, checks in groupby(self.record.checks, key=lambda check: check.stage)
        ]
        return sorted(views, key=lambda view: min(map(_worst, view.statements)) > WORST_FIRST.index("warns"))

    def _statement(
        self, check: CheckOutcome, known: Mapping[str, Claim | Invariant], finding: Finding | None
    ) -> Statement:
        about = known.get(check.claim)
        sentence = about.sentence if about else check.claim
        outcome = "warns" if finding and finding.severity == "warning" else check.outcome
        observed = finding.observed if finding else ""
        if check.claim in (RESULT.id, TRAINER_RESULT.id) and check.outcome == "holds":
            observed = ", ".join(f"{name} {value:.4f}" for name, value in self.record.metrics.items())
        if not isinstance(about, Claim):
            return Statement(check, outcome, sentence, observed=observed)
        documents = ", ".join(sorted({citation.document for citation in about.citations}))
        words = about.words if isinstance(about.words, str) else next(iter(about.words.values()), "")
        documented = "" if about.expected is None else shortened(f"{about.expected}", LONGEST_VALUE)
        return Statement(check, outcome, sentence, f"{about.section} ({documents})", words, documented, observed)

    @cached_property
    def metrics(self) -> list[MetricView]:
        return [self._metric(name, value) for name, value in self.record.metrics.items()]

    def _metric(self, name: str, value: float) -> MetricView:
        if self.baseline is None or name not in self.baseline.metrics:
            return MetricView(name, value)
        recorded = self.baseline.metric(name)
        if len(recorded) < 2:
            return MetricView(name, value, recorded, recorded[0])
        spread = spread_of(self.baseline, name)
        interval = spread.interval(1, alpha(self.baseline))
        ends = [value, *recorded, *interval]
        margin = (max(ends) - min(ends)) * 0.06
        scale = min(ends) - margin, max(ends) + margin
        return MetricView(name, value, recorded, spread.mean, spread.deviation, interval, scale)

    @cached_property
    def _parting(self) -> tuple[Mark | None, str | None]:
        return parting(self.baseline, self.record)

    @property
    def mark(self) -> Mark | None:
        return self._parting[0]

    @property
    def parting(self) -> str | None:
        return self._parting[1]


def run_view(path: Path, record: RunRecord, given: Sequence[Baseline], folder: Path, fallback: Path | None) -> RunView:
    """A run, with its baseline: one of those that are given, else that of a folder."""
    for baseline in given:
        try:
            comparable(baseline, record)
        except (CannotTry, KeyError):
            continue
        return RunView(path, record, baseline, None)
    try:
        file = baseline_of(folder, record, fallback=fallback)
        if not file.exists():
            return RunView(path, record, None, f"there is no baseline {file.name}")
        baseline = Baseline.read(file)
        comparable(baseline, record)
    except CannotTry as reason:
        return RunView(path, record, None, str(reason))
    return RunView(path, record, baseline, None)


def _worst(statement: Statement) -> int:
    return WORST_FIRST.index(statement.outcome)


def _statements() -> dict[str, Claim | Invariant]:
    from harness.documented_run.stages import CLAIMS, INVARIANTS

    return {**CLAIMS, **INVARIANTS}


def parting(baseline: Baseline | None, record: RunRecord) -> tuple[Mark | None, str | None]:
    """The first update whose loss is not the recorded seed's, as a mark and in words; None where none is known."""
    recorded = baseline.run(record.recipe["seed"]) if baseline else None
    if baseline is None or recorded is None:
        return None, None
    pairs = list(zip(recorded.curve, record.curves.loss, strict=False))
    first = next((update for update, (there, here) in enumerate(pairs, start=1) if there != here), None)
    seed = f"seed {recorded.seed}"
    if first is None:
        return None, f"its {len(pairs)} losses are those of the recorded {seed}, bit for bit"
    others = f"first differs from the recorded {seed} at update {first}"
    if not same_draws(recorded.fingerprint, record.fingerprint):
        return Mark(first, "first differing update", fails=False), f"{others}: this machine draws other dropout masks"
    band = band_of(baseline) or EARLY
    taken = band.taken([there for there, _ in pairs], [here for _, here in pairs])
    outside = next((update for update, each in enumerate(taken, start=1) if each > 1), None)
    if outside is not None:
        return Mark(outside, "differs by more than rounding"), f"{others}; more than rounding from update {outside} on"
    within = "" if band is not EARLY else f" in the first {EARLY.updates} updates, for which it is known"
    return Mark(first, "first differing update, within rounding", fails=False), f"{others}; within rounding{within}"


def charts_of(view: RunView) -> list[Chart]:
    """Loss, learning rate and gradient norm, with what the baseline keeps of the recorded seeds."""
    record, baseline = view.record, view.baseline
    window, marks = curves.window_of(record.updates), [view.mark] if view.mark else []
    lr = [Series("this run", record.curves.lr, "run-0")]
    if baseline is not None and baseline.lr is not None:
        lr = [Series("recorded, of all seeds", baseline.lr[: record.updates], "recorded"), *lr]
    losses, norms = _bands(baseline, window)
    drawn = [
        curves.chart("Loss", "of each batch", _noisy(record.curves.loss, window), band=losses, marks=marks),
        curves.chart("Learning rate", "", lr),
        curves.chart("Gradient norm", "of all parameters", _noisy(record.curves.grad_norm, window), band=norms),
    ]
    return [each for each in drawn if each is not None]


def _noisy(values: Sequence[float], window: int) -> list[Series]:
    if window == 1:
        return [Series("this run", values, "run-0")]
    return [
        Series("each update", values, "raw"),
        Series(f"mean of {window} updates", curves.running_means(values, window), "run-0"),
    ]


def _bands(baseline: Baseline | None, window: int) -> tuple[CurveBand | None, CurveBand | None]:
    """Bands of the losses, and of the gradient norms, which were not always kept."""
    seeds = baseline.runs if baseline is not None else []
    return _band([run.curve for run in seeds], window), _band([run.grad_norm for run in seeds], window)


def _band(recorded: Sequence[Sequence[float] | None], window: int) -> CurveBand | None:
    """From the least to the greatest recorded seed of those that have it, of the same means as the run's."""
    means = [curves.running_means(values, window) for values in recorded if values is not None]
    if not means:
        return None
    seeds = f"{len(means)} recorded seeds" if len(means) > 1 else "the recorded seed"
    label = f"least to greatest of {seeds}" + (f", means of {window} updates" if window > 1 else "")
    return CurveBand(
        label, [min(each) for each in zip(*means, strict=True)], [max(each) for each in zip(*means, strict=True)]
    )


def samples(record: RunRecord) -> list[tuple[int, float, float, float]]:
    """Some updates with their figures: for those who cannot see curves."""
    count = min(len(curve) for curve in (record.curves.loss, record.curves.lr, record.curves.grad_norm))
    if not count:
        return []
    chosen = sorted({1 + round(step * (count - 1) / (SAMPLES - 1)) for step in range(SAMPLES)})
    return [
        (update, record.curves.loss[update - 1], record.curves.lr[update - 1], record.curves.grad_norm[update - 1])
        for update in chosen
    ]


@dataclass(frozen=True)
class RunCompared:
    """One run beside the first."""

    view: RunView
    report: CompareReport


@dataclass(frozen=True)
class Runs:
    """Several runs side by side."""

    views: tuple[RunView, ...]
    labels: tuple[str, ...]
    compared: tuple[RunCompared, ...]
    charts: tuple[Chart, ...]

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(name for view in self.views for name in view.record.metrics))


def side_by_side(views: Sequence[RunView]) -> Runs:
    """What differs between the first run and each of the others, and all their curves."""
    from harness.documented_run.compare import records

    first, *others = views
    compared = tuple(
        RunCompared(view, records.compared(str(first.path), first.record, str(view.path), view.record))
        for view in others
    )
    labels = tuple(_labels(views))
    parts = [difference.update for each in compared for difference in each.report.differences]
    marks = [Mark(first_update, "first differing update")] if (first_update := min(parts, default=0)) > 1 else []
    window = curves.window_of(max(view.record.updates for view in views))
    shared = first.baseline if all(view.baseline == first.baseline for view in views) else None

    def overlaid(name: str, means_of: int) -> list[Series]:
        values = [getattr(view.record.curves, name) for view in views]
        return [
            Series(label, curves.running_means(each, means_of), f"run-{number % 6}")
            for number, (label, each) in enumerate(zip(labels, values, strict=True))
        ]

    means = f"means of {window} updates" if window > 1 else "each update"
    losses, norms = _bands(shared, window)
    drawn = [
        curves.chart("Loss", means, overlaid("loss", window), band=losses, marks=marks),
        curves.chart("Learning rate", "", overlaid("lr", 1)),
        curves.chart("Gradient norm", f"of all parameters, {means}", overlaid("grad_norm", window), band=norms),
    ]
    return Runs(tuple(views), labels, compared, tuple(each for each in drawn if each is not None))


def _labels(views: Sequence[RunView]) -> Iterator[str]:
    """A, B and so on, with what tells the runs apart where that is short."""
    for number, view in enumerate(views):
        letter = chr(ord("A") + number) if number < 26 else f"{number + 1}"
        yield f"{letter}: {view.name}"


def baseline_rows(baseline: Baseline) -> list[dict[str, Any]]:
    """Each seed with its figures and its provenance."""
    return [
        {
            "seed": run.seed,
            "metrics": [run.metrics[name] for name in baseline.metrics],
            "loss": run.loss,
            "commit": (run.commit or "unknown")[:8] + ("+" if run.dirty else ""),
            "started": run.started,
            "machine": run.fingerprint.get("device_name") or run.fingerprint.get("cpu") or "unknown",
            "transformers": run.fingerprint.get("libraries", {}).get("transformers") or "unknown",
        }
        for run in sorted(baseline.runs, key=lambda run: run.seed)
    ]
