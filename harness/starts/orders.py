"""What one start of the script is told: how it is run, where it writes its journal, where it is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class KillPoint:
    """The point at which a script is killed: one of the three is set, or none.

    After an update that has just been made; after a backward pass towards the next one; or while a file is half
    written.
    """

    update: int | None = None
    backward: tuple[int, int] | None = None
    """Updates made, and backward passes since."""
    file: int | None = None
    """The number of the file, counted from 1."""


@dataclass(frozen=True)
class Watched:
    """File operations to keep, each with the folder as it lies before it."""

    store: str
    at: tuple[int, ...]
    """Numbers of updates after which file operations are kept."""
    ends: tuple[int, ...] = ()
    """Numbers of updates after which the folder alone is kept, as it lies before the next update."""


@dataclass(frozen=True)
class Keep:
    """What :mod:`harness.compare` keeps of one update, tensors and all."""

    update: int
    file: str
    given: str | None = None
    """What another start has kept: the model is called with that too."""


@dataclass(frozen=True)
class Orders:
    folder: str
    """Folder for the journals of its processes, and their numbers."""
    script: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    place: KillPoint = field(default_factory=KillPoint)
    rank: int | None = None
    """The one that is killed alone; all are, with their launcher, where it is not said."""
    grace: float | None = None
    """Seconds to end by itself after SIGTERM; killed at once where it is not said."""
    restarts: int = 0
    """How often the launcher starts all ranks again by itself."""
    tells_held_out: bool = False
    """Whether it is written down what the rows hold that are trained with and evaluated."""
    operations: bool = False
    """Whether file operations are written down."""
    watched: Watched | None = None
    most_updates: int | None = None
    """End the script where it makes so many: it would not end by itself, or no more are asked for."""
    keep: Keep | None = None
    shortened: bool = False
    """Whether long passes that train are made shorter."""
    vary: dict[str, Any] | None = None
    """What :mod:`harness.vary` has changed in it."""
    check: dict[str, Any] | None = None
    """How :mod:`harness.repairs` has it watched: what check_script takes."""
    task: str = "harness.starts.child:record"
    """The function that starts the script, as MODULE:NAME; it is given these orders, and its result is the status."""

    @property
    def file(self) -> Path:
        return Path(self.folder, "orders.json")

    def write(self) -> None:
        Path(self.folder).mkdir(parents=True)
        self.file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> Orders:
        found = json.loads(file.read_text(encoding="utf-8"))
        backward = found["place"]["backward"]
        place = KillPoint(**{**found["place"], "backward": tuple(backward) if backward else None})
        keep = Keep(**found["keep"]) if found["keep"] else None
        seen = found["watched"]
        watched = Watched(seen["store"], tuple(seen["at"]), tuple(seen["ends"])) if seen else None
        made = {"place": place, "keep": keep, "watched": watched, "arguments": tuple(found["arguments"])}
        return cls(**{**found, **made})

    def journal(self, rank: int, restarts: int = 0) -> Path:
        """Journal of a rank, after so many restarts by its launcher."""
        return Path(self.folder, f"journal-{rank}{f'-{restarts}' * bool(restarts)}.jsonl")

    def pid_file(self, rank: int) -> Path:
        return Path(self.folder, f"pid-{rank}")

    def pids(self) -> Iterator[int]:
        return (int(path.read_text()) for path in Path(self.folder).glob("pid-*"))
