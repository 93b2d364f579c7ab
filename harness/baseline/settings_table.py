"""The table of ``harness vary --settings`` as a section of a training's baseline: one fact for each setting."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.describe.description import Line
from harness.errors import CannotTry
from harness.settings import Training
from harness.vary.settings.starts import EFFECTS
from harness.watch.scripts import run_apart

SETTINGS = "settings"
"""The section, and the start of its facts: ``settings.train.py.weight_decay = "changes the training"``."""


def settings_lines(training: Training, folder: Path) -> list[Line]:
    """Turn each setting of a training, in complete passes and in a process of its own.

    Raises:
        CannotTry: the script crashes as it is, or makes no update.
    """
    ran = run_apart(["vary", "--settings", "--full", "--quiet"], training.command, cwd=folder)
    if ran.written is None:
        raise CannotTry(f"the settings of training {training.name} could not be turned: {ran.last_words}")
    return lines_of(json.loads(ran.written)["settings"])


def lines_of(turned: Sequence[Mapping[str, object]]) -> list[Line]:
    """The lines of a table: a setting is known by its file and its name, and by its place among those of that name."""
    times: Counter[str] = Counter()
    words = {str(effect): words for effect, words in EFFECTS.items()}
    lines = []
    for setting in sorted(turned, key=_place):  # a report has them by what they change: another effect, another place
        where, effect = str(setting["where"]), words[str(setting["effect"])]
        key = f"{SETTINGS}.{where.rpartition(':')[0]}.{setting['name']}"
        times[key] += 1
        number = f"#{times[key]}" if times[key] > 1 else ""
        lines.append(Line(SETTINGS, f"{setting['shown']}: {effect}", {key + number: effect}, where))
    return lines


def _place(turned: Mapping[str, object]) -> tuple[str, int]:
    file, _, line = str(turned["where"]).rpartition(":")
    return file, int(line)
