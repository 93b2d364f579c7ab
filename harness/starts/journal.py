"""The journal of one start of a script: a line of JSON for each thing that happened, read back as dataclasses.

Nothing in it is a tensor: tensors and states are digests, equal where the bits are. Each line reaches the file before
the script goes on, so that a kill loses none.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from harness.digests import Digests

MOST_ROWS = 50_000
"""Rows that are told apart by what they hold; what comes then is no longer."""

DIGEST = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class BatchTrained:
    """A batch that a backward pass came from."""

    number: int
    """Number of the pass over a DataLoader, counted over the passes that train; 0 where the script makes its own
    batches."""
    rows: tuple[str | int, ...]
    """What tells the rows: their places in the dataset where a sampler says them, else digests of what they hold."""
    content: str
    """Digest of all its tensors."""
    rows_hold: tuple[str, ...] = ()
    """Digests of what its rows hold, without padding, where they are asked for."""
    where: str | None = field(default=None, compare=False)
    """FILE:LINE that goes through the DataLoader, or calls the model."""


@dataclass(frozen=True)
class Update:
    """One update, with all that it was computed from: the step of an optimizer, or of several one after the other."""

    at: int
    """Counted from 1 in this start of the script."""
    batches: tuple[BatchTrained, ...]
    losses: tuple[str, ...]
    """Losses of the backward passes since the step before."""
    lr: tuple[float, ...]
    """Learning rate of each parameter group."""
    options: Digests
    """The optimizer's class, and what its groups have besides: weight decay, momentum; as they are, by name."""
    scale: float
    """What a GradScaler had multiplied the loss by."""
    skipped: int
    """Steps since the one before that a GradScaler left out."""
    weights: Digests
    """Weights before the step, buffers among them."""
    state: Digests
    """The optimizer's, before the step, by parameter and kind."""
    gradients: Digests
    random: Digests
    """The states of the generators of random numbers."""
    modes: str
    """Digest of which modules are in training mode, and which parameters get gradients."""
    trained: tuple[str, ...] = ()
    """What the optimizer holds and may change."""
    begun: Digests = field(default_factory=dict)
    """The states of the generators before the rows were drawn, where what the rows hold is asked for; empty where it is
    not known."""
    evaluations: tuple[str, ...] = ()
    """Digests of what models said without gradients since the step before."""
    others: Digests = field(default_factory=dict)
    """The weights of models that were evaluated since then and are not trained, by their classes."""
    taught: tuple[str, ...] = ()
    """Digests of what rows hold that were trained with for the first time."""
    evaluated: tuple[str, ...] = ()
    """Digests of what rows hold that were given to a model without gradients for the first time."""
    where: str | None = None


@dataclass(frozen=True)
class Saved:
    """One file that was written."""

    number: int
    """Counted from 1 in this start."""
    at: int
    """Updates made before it."""
    pending: int
    """Backward passes since the latest update."""
    path: str
    """Relative to the working directory where it lies below it."""
    values: Digests
    """What it holds, by the keys that lead to it: digests of tensors and lists, numbers and words as they are."""
    weights: bool
    """Whether trained weights are among it."""
    where: str | None
    done: bool = False
    """Whether it was written to its end."""
    otherwise: bool = False
    """Whether tensors by the names of all trained weights are among it: with other values, where ``weights`` is not so,
    as in half precision, or averages that take their place while it is written."""
    opened: bool = False
    """Whether it is only known that it was opened to be written."""


@dataclass(frozen=True)
class Operation:
    """Something that is about to be done to a file: opened to be written, written, renamed, removed, made."""

    number: int
    """Counted from 1, over all ranks where the folder is kept."""
    at: int
    """Updates made before it."""
    kind: str
    path: str
    """Relative to the working directory where it lies below it."""
    where: str | None

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


@dataclass(frozen=True)
class Moved:
    """A file or folder that got another name, as what is written beside a checkpoint does when it is complete."""

    before: str
    after: str


@dataclass(frozen=True)
class Loaded:
    """A state that was loaded, or a file that was read."""

    into: str
    """module, optimizer, scheduler, or file."""
    at: int
    where: str | None
    path: str | None = None
    """Path of a file, relative to the working directory where it lies below it."""


@dataclass(frozen=True)
class End:
    """How a start ended by itself."""

    weights: Digests
    crashed: str | None = None
    """The script's own traceback, or how it ended itself."""
    where: str | None = None
    """The line that raised."""
    endless: bool = False
    """Whether it was ended because it made many more updates than the uninterrupted run."""
    failed: str | None = None
    """Why the recorder could not record."""
    evaluations: tuple[str, ...] = ()
    others: Digests = field(default_factory=dict)
    evaluated: tuple[str, ...] = ()


IN_MEMORY = "a buffer in memory"
"""The path of what is no file, and may be written to one afterwards."""

KINDS: dict[str, type[Any]] = {
    "update": Update,
    "saved": Saved,
    "moved": Moved,
    "loaded": Loaded,
    "operation": Operation,
    "end": End,
}


@dataclass
class Journal:
    """What happened in one start of a script, in one of its processes."""

    updates: list[Update] = field(default_factory=list)
    saves: list[Saved] = field(default_factory=list)
    loads: list[Loaded] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    end: End | None = None
    there: frozenset[str] = frozenset()
    """The files in the working directory when it began, relative to it."""
    killed: bool = False
    """Whether it came to where it was to be killed, or asked to end."""
    late: bool = False
    """Whether it had not ended by itself in the time that it was given, and was killed then."""

    @classmethod
    def read(cls, path: Path, *, until: float | None = None) -> Journal:
        """A journal as far as it was written; the last line of a process that was killed may be cut.

        Args:
            until: the number of the operation before which it ends, as that of a process that was killed there; half
                more than that of one that was begun.
        """
        journal = cls()
        if not path.exists():
            return journal
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            read = json.loads(line)
            if until is not None and read["event"] == "operation" and read["number"] >= until - 0.5:
                if read["number"] < until:
                    journal._add(read)
                break
            journal._add(read)
        return journal

    def _add(self, line: dict[str, Any]) -> None:
        kind = line.pop("event")
        if kind == "killed":
            self.killed, self.late = True, self.killed
        elif kind == "update":
            line["batches"] = tuple(
                BatchTrained(**{name: _frozen(value) for name, value in each.items()}) for each in line["batches"]
            )
            if self.updates and self.updates[-1].at == line["at"]:
                self.updates.pop()  # another optimizer has stepped in it since
            self.updates.append(Update(**{name: _frozen(value) for name, value in line.items()}))
        elif kind == "saved":
            self._save(Saved(**line))
        elif kind == "moved":
            self._move(Path(line["before"]), Path(line["after"]))
        elif kind == "loaded":
            self.loads.append(Loaded(**line))
        elif kind == "operation":
            self.operations.append(Operation(**line))
        else:
            self.end = End(**{name: _frozen(value) for name, value in line.items()})

    def _save(self, saved: Saved) -> None:
        """A file, as its writing begins or ends; what is opened right behind a buffer gets what that holds."""
        last = self.saves[-1] if self.saves else None
        ends = last is not None and saved.done and last.number == saved.number
        buffer = last is not None and last.path == IN_MEMORY and last.done and saved.opened
        if (
            last is not None
            and (buffer or (ends and saved.opened))
            and (last.at, last.pending) == (saved.at, saved.pending)
        ):
            saved = replace(saved, values=last.values, weights=last.weights, otherwise=last.otherwise, opened=False)
        if ends:
            self.saves.pop()
        self.saves.append(saved)

    def _move(self, before: Path, after: Path) -> None:
        if self.saves and self.saves[-1].path == IN_MEMORY and self.saves[-1].done:
            self.saves[-1] = replace(self.saves[-1], path=str(after))  # it was written to a file elsewhere first
        seen = set[str]()
        for number, saved in reversed(list(enumerate(self.saves))):
            latest = saved.path not in seen  # what was written there before is no longer
            seen.add(saved.path)
            if saved.done and latest and Path(saved.path).is_relative_to(before):
                self.saves[number] = replace(saved, path=str(after / Path(saved.path).relative_to(before)))

    def checkpoints(self) -> list[Saved]:
        """The files with trained weights that were written to their end before the last update; where there are none,
        those that have them otherwise."""
        before = [saved for saved in self.saves if saved.done and saved.at < len(self.updates)]
        return [saved for saved in before if saved.weights] or [saved for saved in before if saved.otherwise]

    @property
    def taught(self) -> frozenset[str]:
        """Digests of what the rows hold that were trained with."""
        return frozenset(row for update in self.updates for row in update.taught)

    @property
    def evaluated(self) -> frozenset[str]:
        """Digests of what the rows hold that were given to a model without gradients."""
        last = () if self.end is None else self.end.evaluated
        return frozenset((*(row for update in self.updates for row in update.evaluated), *last))


def is_tensor(value: str) -> bool:
    """Whether a value of a file is the digest of a tensor of numbers with a point."""
    return DIGEST.fullmatch(value) is not None


def loss_in(value: str) -> float | None:
    """The number that a loss was; None where it is a digest of several."""
    return float.fromhex(value) if value.lstrip("-").startswith("0x") else None


def losses_shown(losses: Sequence[str]) -> str:
    """The losses of an update, for a person."""
    return ", ".join(each if (value := loss_in(each)) is None else f"{value:.9g}" for each in losses)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Writer:
    """Writes a journal."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.RLock()  # a thread of the script's may save meanwhile

    def write(self, event: Update | Saved | Moved | Loaded | Operation | End | None) -> None:
        """Write down an event; None is the kill, or the first time that it is asked to end."""
        name = next((name for name, kind in KINDS.items() if type(event) is kind), "killed")
        line = json.dumps({"event": name} | ({} if event is None else asdict(event))) + "\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()
