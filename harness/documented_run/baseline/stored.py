"""The stored form of a baseline: one file for each recipe, loop and hardware class."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from harness.documented_run.baseline.files import CANDIDATES, Finite, Stored, candidate_path, hardware_class, locked
from harness.documented_run.claims import RESULT, TRAINER_RESULT
from harness.documented_run.metrics import RANGES
from harness.documented_run.recipe import DOCUMENTED_METRICS, METRICS, is_module
from harness.documented_run.record import RunRecord, Weights
from harness.errors import CannotTry
from harness.files import StrictModel, check_writable, first_error

SOURCES = ("data", "checkpoint")
"""Where data and weights are read from: other folders may hold the same, which ``inputs`` tells."""


def in_range(metrics: dict[str, float]) -> dict[str, float]:
    """The metrics, where those with a known range are in it."""
    for name in filter(METRICS.__contains__, metrics):
        least, most = RANGES.get(name, (0.0, 1.0))
        if not least <= metrics[name] <= most:
            raise ValueError(f"{name} is {metrics[name]!r}; expected {least:g} to {most:g}")
    return metrics


class SeedRun(StrictModel):
    """One whole run of the recipe with one seed, and where it comes from."""

    seed: int
    metrics: Annotated[dict[str, Finite], Field(min_length=1), AfterValidator(in_range)]
    """On the validation set, by name."""
    loss: Finite
    """The mean training loss of the last epoch."""
    weights: Weights
    """The checksum of the fine-tuned parameters."""
    fingerprint: dict[str, Any]
    commit: str | None
    dirty: bool | None
    command: str
    started: str
    curve: list[Finite]
    """The loss of every update."""
    grad_norm: list[Finite] | None = None
    """The norm of all gradients at every update, to be looked at; None in files of before it was kept."""

    @model_serializer(mode="wrap")
    def _as_ever(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The documented metrics stand beside the other values: schema 1 is older than the others."""
        values: dict[str, Any] = serialize(self)
        if self.grad_norm is None:
            del values["grad_norm"]
        if set(self.metrics) != set(DOCUMENTED_METRICS):
            return values
        of_each = ({name: value} if name != "metrics" else value for name, value in values.items())
        return {name: value for each in of_each for name, value in each.items()}

    @model_validator(mode="before")
    @classmethod
    def _from_as_ever(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "metrics" in values:
            return values
        others = {name: value for name, value in values.items() if name not in DOCUMENTED_METRICS}
        return others | {"metrics": {name: values[name] for name in DOCUMENTED_METRICS if name in values}}


class Baseline(Stored):
    """What some seeds of one recipe, loop and hardware class came to."""

    kind: ClassVar[str] = "baseline"

    recipe: dict[str, Any]
    """All of its values but the seed."""
    inputs: dict[str, str]
    """What data and checkpoint hold, as SHA-256."""
    rows: int = Field(ge=1)
    """Rows of the validation set: the metrics are told apart by steps of one row."""
    lr: list[Finite] | None = None
    """The learning rate of every update, which all seeds share; None in files of before it was kept."""
    runs: list[SeedRun] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Baseline:
        for key in ("name", "loop"):
            if not isinstance(self.recipe.get(key), str):
                raise ValueError(f"recipe has no {key}")
        for key, least in (("processes", 1), ("num_labels", 2)):
            if type(number := self.recipe.get(key, least)) is not int or number < least:
                raise ValueError(f"recipe.{key} is {number!r}; expected a whole number of at least {least}")
        seeds = [run.seed for run in self.runs]
        if len(seeds) != len(set(seeds)):
            raise ValueError("a seed occurs twice")
        if len({len(run.curve) for run in self.runs}) != 1 or not self.runs[0].curve:
            raise ValueError("the curves are empty, or differ in length")
        if len({frozenset(run.metrics) for run in self.runs}) != 1:
            raise ValueError("the runs have different metrics")
        updates = len(self.runs[0].curve)
        if self.lr is not None and len(self.lr) != updates:
            raise ValueError(f"lr has {len(self.lr)} values for {updates} updates")
        if norms := [run.grad_norm for run in self.runs if run.grad_norm and len(run.grad_norm) != updates]:
            raise ValueError(f"grad_norm has {len(norms[0])} values for {updates} updates")
        return self

    @property
    def name(self) -> str:
        return name_of(self.recipe, self.hardware)

    @property
    def counts(self) -> dict[str, int]:
        return {"seeds": len(self.runs)}

    def new_seeds(self, start: int, count: int) -> list[int]:
        """The first ``count`` seeds from ``start`` on that were not recorded."""
        return list(itertools.islice((seed for seed in itertools.count(start) if self.run(seed) is None), count))

    def run(self, seed: int) -> SeedRun | None:
        return next((run for run in self.runs if run.seed == seed), None)

    @property
    def metrics(self) -> tuple[str, ...]:
        """What was measured, by name."""
        return tuple(self.runs[0].metrics)

    def metric(self, name: str) -> tuple[float, ...]:
        return tuple(run.metrics[name] for run in self.runs)

    def ordered(self) -> Baseline:
        return self.model_copy(update={"runs": sorted(self.runs, key=lambda run: run.seed)})


def name_of(recipe: dict[str, Any], hardware: str) -> str:
    """The file's name without its ending.

    >>> name_of({"name": "tiny", "loop": "accelerate", "processes": 2}, "cpu")
    'tiny-accelerate-2-cpu'
    """
    processes = [str(recipe["processes"])] if recipe.get("processes", 1) > 1 else []
    split = ["split"] if recipe.get("split_batches") else []
    return re.sub(r"[^\w.-]+", "-", "-".join([recipe["name"], recipe["loop"], *processes, *split, hardware])).strip(
        ".-"
    )


def as_plain(recipe: dict[str, Any]) -> dict[str, Any]:
    """The recipe as the plain loop's, where it makes the same bits: Accelerate's in one process."""
    alike = recipe["loop"] == "accelerate" and recipe.get("processes", 1) == 1
    return {**recipe, "loop": "plain", "split_batches": False} if alike else recipe


def without_seed(recipe: dict[str, Any]) -> dict[str, Any]:
    """What a baseline keeps of a recipe, as it is read back from JSON."""
    kept = {name: value for name, value in recipe.items() if name not in ("seed", *SOURCES)}
    if "metrics" in kept:  # a module may lie in another folder as well; ``inputs`` tells whether it is the same
        kept["metrics"] = [Path(metric).name for metric in kept["metrics"]]
    plain: dict[str, Any] = json.loads(json.dumps(kept))
    return plain


def seed_run(record: RunRecord) -> SeedRun:
    """The run as a baseline keeps it.

    Raises:
        CannotTry: it is no whole run, it found something, or it lacks a metric.
    """
    what = f"the run of recipe {record.recipe['name']} with seed {record.recipe['seed']}"
    if record.interrupted or not record.whole:
        raise CannotTry(
            f"{what} made {record.updates} of {record.updates_planned} updates; only complete runs are recorded"
        )
    for name in ("loss", "lr"):
        if (found := len(getattr(record.curves, name))) != record.updates:
            raise CannotTry(
                f"{what} has {found} values of {name} for {record.updates} updates; the record is incomplete"
            )
    # A seed outside the documents' ball park is a seed: without it the spread would be too small.
    of_the_run = {check.check for check in record.checks if check.claim not in (RESULT.id, TRAINER_RESULT.id)}
    failed = sorted({each.check for each in record.findings if each.severity == "error" and each.check in of_the_run})
    if failed:
        raise CannotTry(f"{what} has findings ({', '.join(failed)}); fix them first")
    named = record.recipe.get("metrics", DOCUMENTED_METRICS)
    scores = [metric for metric in named if not is_module(metric)]
    if not set(scores) <= set(record.metrics) or (len(scores) == len(named) != len(record.metrics)):
        raise CannotTry(f"{what} has the metrics {', '.join(record.metrics) or 'none'}; expected {', '.join(named)}")
    assert record.weights is not None  # of a whole run
    last_epoch = record.curves.loss[-(record.updates // record.recipe["epochs"]) :]
    try:
        return SeedRun(
            seed=record.recipe["seed"],
            metrics=record.metrics,
            loss=fmean(last_epoch),
            weights=record.weights,
            fingerprint=record.fingerprint,
            commit=record.provenance.commit,
            dirty=record.provenance.dirty,
            command=record.provenance.command,
            started=record.started,
            curve=record.curves.loss,
            grad_norm=_shown(record.curves.grad_norm, record.updates),
        )
    except ValidationError as error:
        raise CannotTry(f"{what}: {first_error(error)}") from error


def _shown(norms: Sequence[float], updates: int) -> list[float] | None:
    """Norms with as many digits as a chart shows; None where a norm is missing, or infinite as before a scaler leaves
    it out."""
    whole = len(norms) == updates and all(map(math.isfinite, norms))
    return [float(f"{norm:.4g}") for norm in norms] if whole else None


def of_records(records: Sequence[RunRecord]) -> Baseline:
    """What runs of one recipe came to; the first of them says of what data, weights and hardware.

    Raises:
        CannotTry: one of them cannot be recorded.
    """
    first = records[0]
    if other := [record.recipe["seed"] for record in records if record.curves.lr != first.curves.lr]:
        raise CannotTry(
            f"seed {other[0]} has different learning rates from seed {first.recipe['seed']} of the same recipe"
        )
    return Baseline(
        recipe=without_seed(first.recipe),
        hardware=hardware_class(first.fingerprint),
        inputs=first.inputs,
        rows=first.rows["validation"],
        lr=first.curves.lr,
        runs=[seed_run(record) for record in records],
    )


def add(folder: Path, record: RunRecord) -> Path:
    """Add a run to the candidate that its baseline may become, and return the candidate's file.

    Raises:
        CannotTry: the run cannot be recorded, or as :func:`merge`.
    """
    return merge(folder, of_records([record]))


def merge(folder: Path, new: Baseline) -> Path:
    """Add seeds to the candidate that their baseline may become, and return the candidate's file.

    Others may add to it at the same time; nothing is lost. A seed that is there already is replaced.

    Raises:
        CannotTry: the candidate is of other data, weights, recipe values or learning rates.
    """
    path, seeds = candidate_path(folder, new.name), {run.seed for run in new.runs}
    new = new.model_copy(update={"reason": None, "replaces": None, "runs": list(new.runs)})
    with locked(path):
        if path.exists():
            old = Baseline.read(path)
            _of_one_thing(path, old, new.recipe, new.inputs)
            if old.lr not in (None, new.lr):
                raise CannotTry(
                    f"candidate {path} has different learning rates from seed {min(seeds)} of the same recipe; look "
                    "at the schedule, or accept or delete it first"
                )
            new.runs += [each for each in old.runs if each.seed not in seeds]
        new.write(path)
    return path


def check_candidates(folder: Path) -> None:
    """Whether a candidate can be written: known before anything is trained for it.

    Raises:
        CannotTry: it cannot.
    """
    candidates = folder / CANDIDATES
    try:
        candidates.mkdir(parents=True, exist_ok=True)
        check_writable(candidates)
    except OSError as error:
        raise CannotTry(f"{candidates} cannot be written ({error.strerror}); choose --baselines") from error


def candidate_of(folder: Path, record: RunRecord) -> Path:
    """The candidate that a run of this recipe and hardware is added to."""
    return candidate_path(folder, name_of(record.recipe, hardware_class(record.fingerprint)))


def recorded_already(folder: Path, start: RunRecord, *, facts: Collection[str] | None = None) -> set[int]:
    """The seeds that need not be trained again: recorded on this fingerprint by this very commit, without changes.

    ``start`` is the beginning of a run of the recipe, which tells data, weights and device. ``facts`` are those of the
    fingerprint that must be the same; all of them, if nobody says.

    Raises:
        CannotTry: the candidate is of other data, weights or recipe values.
    """
    path = candidate_of(folder, start)
    if not path.exists():
        return set()
    candidate = Baseline.read(path)
    _of_one_thing(path, candidate, without_seed(start.recipe), start.inputs)
    now = start.provenance

    def same(fingerprint: dict[str, Any]) -> bool:
        names = fingerprint | start.fingerprint if facts is None else facts
        return all(fingerprint.get(name) == start.fingerprint.get(name) for name in names)

    return {
        run.seed
        for run in candidate.runs
        if same(run.fingerprint) and run.commit == now.commit and not (run.dirty or now.dirty)
    }


def _of_one_thing(path: Path, candidate: Baseline, recipe: dict[str, Any], inputs: dict[str, str]) -> None:
    for key, found in (("recipe", recipe), ("inputs", inputs)):
        if (expected := getattr(candidate, key)) != found:
            raise CannotTry(
                f"candidate {path} has a different {key}: expected {expected}, found {found}; accept or delete it first"
            )
