"""What every file in a folder of baselines has, and where it lies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from harness.errors import CannotTry
from harness.files import StrictModel, claimed, read_model, write_atomically
from harness.findings import shortened

SCHEMA: Literal[1] = 1
CANDIDATES = "candidates"
LONGEST_NAME = 200
"""File systems take 255 characters with the endings."""
FOLDER = Path("baselines")
"""Where baselines are recorded, if nobody says."""


def finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


Finite = Annotated[float, AfterValidator(finite)]


class Stored(StrictModel):
    """Some runs on one hardware class, and why they are what later ones are held against."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    hardware: str
    reason: str | None = None
    """Why it was accepted; None for a candidate."""
    replaces: str | None = None
    """The SHA-256 of the file that it replaced."""

    if TYPE_CHECKING:  # each kind has its own, as the last of its keys
        runs: list[Any]

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        raise NotImplementedError

    @property
    def counts(self) -> dict[str, int]:
        """How many runs there are of each thing that was measured."""
        raise NotImplementedError

    def ordered(self) -> Self:
        return self

    def write(self, path: Path) -> None:
        """Write it whole or not at all, in a stable order, one value a line: a change shows as one in a diff."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, self.ordered().model_dump_json(indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a baseline file.

        Raises:
            CannotTry: no such file, or it cannot be trusted; names the file, the key and what is wrong with it.
        """
        remedy = "record one with harness baseline record, restore it, or choose a folder with --baselines"
        return read_model(path, cls, "baseline", remedy)


def hardware_class(fingerprint: dict[str, Any]) -> str:
    """Which machines share a baseline: all CPUs, or the accelerators of one model.

    >>> hardware_class({"device": "cuda", "device_name": "NVIDIA H200"})
    'nvidia-h200'
    """
    named = fingerprint["device_name"] or fingerprint["device"]
    return re.sub(r"[^a-z0-9]+", "-", str(named).lower()).strip("-")


def baseline_path(folder: Path, name: str) -> Path:
    """The file of a baseline.

    Raises:
        CannotTry: the name is a path.
    """
    if Path(name).name != name or len(name) > LONGEST_NAME or "\0" in name:
        raise CannotTry(f"a baseline has a name such as tiny-plain-cpu, found {shortened(repr(name), LONGEST_NAME)}")
    return folder / f"{name}.json"


def shipped_folder() -> Path:
    """The baselines and the matrix that come with the package: inside a wheel, beside the package in a checkout."""
    package = Path(str(resources.files("harness")))
    inside = package / "documented_run" / "assets" / "baselines"
    return inside if inside.is_dir() else package.parent / "baselines"


def candidate_path(folder: Path, name: str) -> Path:
    return baseline_path(folder / CANDIDATES, name)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with claimed(path.with_suffix(".lock")):
        yield
