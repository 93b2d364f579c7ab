"""The stored form of a baseline: one file for each recipe, loop and hardware class."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from filelock import FileLock
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.claims import CLAIMS
from harness.errors import CannotTry
from harness.record import RunRecord, check_writable, write_atomically

SCHEMA: Literal[1] = 1
CANDIDATES = "candidates"
METRICS = ("accuracy", "f1")
SOURCES = ("data", "checkpoint")
"""Where data and weights are read from: other folders may hold the same, which ``inputs`` tells."""


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


Finite = Annotated[float, AfterValidator(_finite)]
Fraction = Annotated[float, Field(ge=0, le=1), AfterValidator(_finite)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)


class SeedRun(_Part):
    """One whole run of the recipe with one seed, and where it comes from."""

    seed: int
    accuracy: Fraction
    f1: Fraction
    loss: Finite
    """The mean training loss of the last epoch."""
    weights: str
    """The checksum of the fine-tuned parameters."""
    fingerprint: dict[str, Any]
    commit: str | None
    dirty: bool | None
    command: str
    started: str
    curve: list[Finite]
    """The loss of every update."""


class Baseline(_Part):
    """What some seeds of one recipe, loop and hardware class came to."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    recipe: dict[str, Any]
    """All of its values but the seed."""
    hardware: str
    inputs: dict[str, str]
    """What data and checkpoint hold, as SHA-256."""
    rows: int = Field(ge=1)
    """Of the validation set: the metrics are told apart by steps of one row."""
    reason: str | None = None
    """Why it was accepted; None for a candidate."""
    replaces: str | None = None
    """The SHA-256 of the file that it replaced."""
    runs: list[SeedRun] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Baseline:
        for key in ("name", "loop"):
            if not isinstance(self.recipe.get(key), str):
                raise ValueError(f"recipe has no {key}")
        seeds = [run.seed for run in self.runs]
        if len(seeds) != len(set(seeds)):
            raise ValueError("a seed is there twice")
        if len({len(run.curve) for run in self.runs}) != 1 or not self.runs[0].curve:
            raise ValueError("the curves are empty, or not equally long")
        return self

    @property
    def name(self) -> str:
        return name_of(self.recipe, self.hardware)

    def run(self, seed: int) -> SeedRun | None:
        return next((run for run in self.runs if run.seed == seed), None)

    def metric(self, name: str) -> tuple[float, ...]:
        return tuple(getattr(run, name) for run in self.runs)

    def write(self, path: Path) -> None:
        """Write it whole or not at all, its seeds in order, one value a line: a change shows as one in a diff."""
        path.parent.mkdir(parents=True, exist_ok=True)
        ordered = self.model_copy(update={"runs": sorted(self.runs, key=lambda run: run.seed)})
        write_atomically(path, ordered.model_dump_json(indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Read a baseline file.

        Raises:
            CannotTry: no such file, or it cannot be trusted; names the file, the key and what is wrong with it.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError as error:
            raise CannotTry(
                f"baseline {path} not found; record one with harness baseline record, or choose a folder with "
                "--baselines"
            ) from error
        except OSError as error:
            raise CannotTry(f"baseline {path} cannot be read ({error.strerror})") from error
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "the file"
            newer = " (of a newer harness?)" if key == "schema" else ""
            raise CannotTry(
                f"baseline {path}: {key}: {first['msg']}{newer} ({error.error_count()} in all); restore the file, or "
                "record and accept it anew"
            ) from error


def hardware_class(fingerprint: dict[str, Any]) -> str:
    """Which machines share a baseline: all CPUs, or the GPUs of one model.

    >>> hardware_class({"device": "cuda", "device_name": "NVIDIA H200"})
    'nvidia-h200'
    """
    named = fingerprint["device_name"] if fingerprint["device"] != "cpu" else "cpu"
    return re.sub(r"[^a-z0-9]+", "-", str(named).lower()).strip("-")


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


def without_seed(recipe: dict[str, Any]) -> dict[str, Any]:
    """What a baseline keeps of a recipe, as it is read back from JSON."""
    kept = {name: value for name, value in recipe.items() if name not in ("seed", *SOURCES)}
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
            f"{what} made {record.updates} of {record.updates_planned} updates; only whole runs are recorded"
        )
    # A seed outside the documents' ball park is a seed: without it the spread would be too small.
    of_the_run = {check.check for check in record.checks if not _about_the_outcome(check.claim)}
    failed = sorted({each.check for each in record.findings if each.severity == "error" and each.check in of_the_run})
    if failed:
        raise CannotTry(f"{what} found something ({', '.join(failed)}); mend that first")
    if set(record.metrics) != set(METRICS):
        raise CannotTry(f"{what} has the metrics {', '.join(record.metrics) or 'none'}; expected {', '.join(METRICS)}")
    assert record.weights is not None  # of a whole run
    last_epoch = record.curves.loss[-(record.updates // record.recipe["epochs"]) :]
    try:
        return SeedRun(
            seed=record.recipe["seed"],
            accuracy=record.metrics["accuracy"],
            f1=record.metrics["f1"],
            loss=fmean(last_epoch),
            weights=record.weights,
            fingerprint=record.fingerprint,
            commit=record.provenance.commit,
            dirty=record.provenance.dirty,
            command=record.provenance.command,
            started=record.started,
            curve=record.curves.loss,
        )
    except ValidationError as error:
        first = max(error.errors(), key=lambda each: len(each["loc"]))  # the one that says the place most exactly
        raise CannotTry(f"{what}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _about_the_outcome(claim: str) -> bool:
    return claim in CLAIMS and CLAIMS[claim].kind == "ball park"


def add(folder: Path, record: RunRecord) -> Path:
    """Add a run to the candidate that its baseline may become, and return the candidate's file.

    Others may add to it at the same time; nothing is lost. A seed that is there already is replaced.

    Raises:
        CannotTry: the run cannot be recorded, or the candidate is of other data, weights or recipe values.
    """
    run, hardware = seed_run(record), hardware_class(record.fingerprint)
    recipe = without_seed(record.recipe)
    path = candidate_path(folder, name_of(recipe, hardware))
    with locked(path):
        new = Baseline(
            recipe=recipe, hardware=hardware, inputs=record.inputs, rows=record.rows["validation"], runs=[run]
        )
        if path.exists():
            old = Baseline.read(path)
            _of_one_thing(path, old, new.recipe, new.inputs)
            new.runs += [each for each in old.runs if each.seed != run.seed]
        new.write(path)
    return path


def recorded_already(folder: Path, start: RunRecord) -> set[int]:
    """The seeds that need not be trained again: recorded on this fingerprint by this very commit, without changes.

    ``start`` is the beginning of a run of the recipe, up to the model, which tells data and weights.

    Raises:
        CannotTry: the candidate is of other data, weights or recipe values; or the folder cannot be written.
    """
    path = candidate_path(folder, name_of_run(start))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(path.parent)
    except OSError as error:
        raise CannotTry(f"{path.parent} cannot be written ({error.strerror}); choose --baselines") from error
    if not path.exists():
        return set()
    candidate = Baseline.read(path)
    _of_one_thing(path, candidate, without_seed(start.recipe), start.inputs)
    now = start.provenance
    return {
        run.seed
        for run in candidate.runs
        if run.fingerprint == start.fingerprint and run.commit == now.commit and not (run.dirty or now.dirty)
    }


def _of_one_thing(path: Path, candidate: Baseline, recipe: dict[str, Any], inputs: dict[str, str]) -> None:
    for key, found in (("recipe", recipe), ("inputs", inputs)):
        if (expected := getattr(candidate, key)) != found:
            raise CannotTry(
                f"candidate {path} has another {key}: expected {expected}, found {found}; accept or delete it first"
            )


def name_of_run(record: RunRecord) -> str:
    """The name of the baseline that a run is compared with."""
    return name_of(record.recipe, hardware_class(record.fingerprint))


def is_baseline(path: Path) -> bool:
    """Whether the file is a baseline or candidate, and not a run record: it has several runs."""
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError) as error:
        raise CannotTry(f"{path} cannot be read as JSON: {error}") from error
    return isinstance(content, dict) and "runs" in content


def accept(folder: Path, name: str, reason: str) -> Path:
    """Make the candidate the baseline. The old one's hash and the reason go into the new file.

    Raises:
        CannotTry: no such candidate, or no reason.
    """
    candidate, path = candidate_path(folder, name), baseline_path(folder, name)
    if not reason.strip():
        raise CannotTry("a baseline is accepted for a reason; give one with --reason")
    Baseline.read(candidate)  # before a lock is left beside nothing
    with locked(candidate):
        new = Baseline.read(candidate)
        before = len(Baseline.read(path).runs) if path.exists() else 2
        if len(new.runs) < before:
            raise CannotTry(
                f"candidate {candidate} has {len(new.runs)} seeds, expected {before} or more"
                + (", as many as the baseline that it would replace" if path.exists() else ", which have a spread")
            )
        new.reason = reason.strip()
        new.replaces = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
        new.write(path)
        candidate.unlink()
    return path


def baseline_path(folder: Path, name: str) -> Path:
    """The file of a baseline.

    Raises:
        CannotTry: the name is a path.
    """
    if Path(name).name != name:
        raise CannotTry(f"a baseline has a name such as tiny-plain-cpu, found {name!r}")
    return folder / f"{name}.json"


def candidate_path(folder: Path, name: str) -> Path:
    return baseline_path(folder / CANDIDATES, name)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        yield
