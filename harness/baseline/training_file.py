"""The file of a training's baseline: one fact a line, which people read and git compares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.baseline.formerly import fact_today
from harness.baseline.settings_table import SETTINGS
from harness.describe.description import ORDER
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.settings import Training

NUMBERS, NOISE = "numbers", "noise"
"""The sections behind those of the behaviour: what was measured, and how far apart runs of one script measure it."""

VARIES = "(varies)"
"""Value in the place of a fact in which runs of one script differ."""


@dataclass
class StoredTraining:
    """A baseline of a training, as its file has it."""

    command: str
    commit: str | None
    fingerprint: dict[str, Any]
    facts: dict[str, Any]
    says: dict[str, str] = field(default_factory=dict)
    """Fact to the line for people, which is in the file as a comment before the first fact of that line."""
    numbers: dict[str, list[float]] = field(default_factory=dict)
    noise: dict[str, list[float]] = field(default_factory=dict)
    """Number to the largest and the mean distance between the recordings, as a share."""
    accepted: list[str] = field(default_factory=list)
    """Why sections were changed."""


def section_of(key: str) -> str:
    """The section that a fact belongs to; those of another loop of the script are the same."""
    parts = key.split(".")
    return parts[1] if parts[0].startswith("loop") and len(parts) > 1 and parts[1] in ORDER else parts[0]


def sections() -> tuple[str, ...]:
    return (*(section for section in ORDER if section != "checks"), SETTINGS, NUMBERS)


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.txt"


def text_of(stored: StoredTraining, name: str) -> str:
    """The file: comments, then one fact a line, by sections in causal order, the numbers last."""
    lines = [
        f"# What training {name} does, one fact a line. Change a section with: harness baseline accept {name} SECTION",
        f"# command: {stored.command}",
        f"# commit: {stored.commit or 'none'}",
        f"# machine: {json.dumps(stored.fingerprint, sort_keys=True)}",
        *(f"# accepted: {each}" for each in stored.accepted),
    ]
    for section in sections():
        of_it = {key: value for key, value in stored.facts.items() if section_of(key) == section}
        lines += [""] if of_it else []
        comment = None
        for key, value in of_it.items():
            if stored.says.get(key) != comment:
                comment = stored.says.get(key)
                lines.append(f"# {comment or ''}".rstrip())
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    lines.append("")
    for start, values in ((NUMBERS, stored.numbers), (NOISE, stored.noise)):
        lines += [f"{start}.{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def read(path: Path, name: str) -> StoredTraining:
    """Read the baseline of a training.

    Raises:
        CannotTry: there is none, or a line of it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise CannotTry(
            f"training {name} has no baseline {path}; record it with harness baseline record {name}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CannotTry(f"baseline {path} cannot be read: {error}") from error
    head: dict[str, list[str]] = {"command": [], "commit": [], "machine": [], "accepted": []}
    facts: dict[str, Any] = {}
    says: dict[str, str] = {}
    comment = None
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            key, colon, value = line[1:].strip().partition(": ")
            if colon and key in head:
                head[key].append(value)
            else:
                comment = line[1:].strip() or None
            continue
        if not line.strip():
            comment = None
            continue
        key, equals, value = line.partition(" = ")
        try:
            if not equals:
                raise ValueError("no KEY = VALUE")
            facts[key] = fact_today(key, json.loads(value))
        except ValueError as error:
            raise CannotTry(f"baseline {path}, line {number}: {error}; restore it, or record it again") from error
        if comment is not None:
            says[key] = comment
    numbers = {key: facts.pop(f"{NUMBERS}.{key}") for key in _keys_below(facts, NUMBERS)}
    noise = {key: facts.pop(f"{NOISE}.{key}") for key in _keys_below(facts, NOISE)}
    if not facts or not numbers or not head["command"] or not head["machine"]:
        raise CannotTry(f"baseline {path} has no facts, no numbers or no command; restore it, or record it again")
    commit = head["commit"][0] if head["commit"] else None
    machine = json.loads(head["machine"][0])
    return StoredTraining(head["command"][0], commit, machine, facts, says, numbers, noise, head["accepted"])


def _keys_below(facts: Mapping[str, Any], start: str) -> list[str]:
    return [key.removeprefix(f"{start}.") for key in facts if key.startswith(f"{start}.")]


def write(path: Path, stored: StoredTraining, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text_of(stored, name))


def left_over(folder: Path, trainings: Sequence[Training]) -> Iterator[Path]:
    """Baselines of trainings that are gone from pyproject.toml."""
    known = {training.name for training in trainings}
    for path in sorted(folder.glob("*.txt")):
        if path.stem not in known and path.read_text(encoding="utf-8", errors="replace").startswith("# What training "):
            yield path
