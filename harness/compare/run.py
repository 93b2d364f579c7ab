"""``harness compare``: both sides from the start, under the recorder, and the first update that differs once more."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import launch
from harness.compare import differences
from harness.compare.differences import CompareReport, Difference
from harness.compare.names import Names, matched, renamed, renamed_kept
from harness.errors import CannotTry
from harness.findings import few
from harness.starts.journal import Journal
from harness.starts.orders import Keep
from harness.starts.workdir import Command, Scratch, Start, no_progress, scratch

UPDATES = 50

TASK = "harness.compare.look:record"
"""What starts a script that is compared."""

NAMES_SHOWN = 4
"""Names that are said."""


LAUNCHED = "harness compare starts each script in one process, and without a launcher"
"""What to do with a script that a launcher is to start."""

IDLE = (
    "so there is nothing to compare; processes that it starts itself (torch.multiprocessing, torchrun) are not watched"
)
"""What follows where a script makes no update."""


def start_of(command: Command, given: Scratch, number: int, most_updates: int, keep: Keep) -> Start:
    """A start of a script from the beginning, which keeps what one update is made of.

    Raises:
        CannotTry: it crashes, or nothing is trained.
    """
    how = {"most_updates": most_updates, "keep": keep, "task": TASK}
    return given.workdir(number, command).uninterrupted(launched=LAUNCHED, idle=IDLE, **how)


def compare_scripts(
    a: Command, b: Command, *, updates: int = UPDATES, tell: Callable[[str], None] = no_progress
) -> CompareReport:
    """Run both from the start, each in a copy of the working directory, and name what differs first.

    ``updates`` are compared, or all that both make. ``tell`` gets a line for each start.

    Raises:
        CannotTry: there is no such script, it crashes, makes no update, or several processes are to be compared.
    """
    from harness.watch.running import readable_script

    if (launch.world_size() or 1) > 1:
        raise CannotTry("harness compare starts the scripts itself, each in one process: call it without a launcher")
    for command in (a, b):
        if not command.module:
            readable_script(command.script)
    report = CompareReport(_shown(a, b), _shown(b, a))
    with scratch("harness-compare-") as given:
        files = [str(given.root / f"kept-{name}.pt") for name in "ab"]
        number = 0

        def start(command: Command, keep: Keep) -> Journal:
            nonlocal number
            found = start_of(command, given, number, max(updates, keep.update) + 1, keep)
            number += 1
            tell(f"{command.script}: {len(found.journals[0].updates)} updates, {found.seconds:.0f} s")
            return found.journals[0]

        def both(update: int) -> tuple[list[Journal], list[Mapping[str, Any]]]:
            started = [start(a, Keep(update, files[0])), start(b, Keep(update, files[1], files[0]))]
            return started, [_read(file, command) for file, command in zip(files, (a, b), strict=True)]

        journals, kept = both(1)
        names = matched(kept[0]["weights"], kept[1]["weights"])
        if names is not None:
            journals[1], kept[1] = renamed(journals[1], names), renamed_kept(kept[1], names, kept[0])
            report.notes += _names_that_differ(names)
        made = [len(each.updates) for each in journals]
        report.updates = min(*made, updates)
        report.beside = differences.beside(kept[0]["fingerprint"], kept[1]["fingerprint"])
        one, other = (replace(each, updates=each.updates[:updates]) for each in journals)
        found = list(differences.given((one, other), (kept[0], kept[1]), names))
        first = differences.parting(journals[0], journals[1], updates)
        if first is not None:
            if first > 1:
                again, kept = both(first)
                if names is not None:
                    again[1], kept[1] = renamed(again[1], names), renamed_kept(kept[1], names, kept[0])
                report.notes += _not_repeated((a, b), journals, again, first)
            pair = one.updates[first - 1], other.updates[first - 1]
            new, report.equal = differences.computed(*pair, kept[0], kept[1], names)
            if not new and not any(each.update <= first for each in found):
                new = [differences.elsewhere(journals[0], journals[1], first)]
            found += list(differences.with_causes(found, new))
        if min(made) <= updates and made[0] != made[1]:
            counts = _more(made[0], updates), _more(made[1], updates)
            found.append(Difference(differences.HYPER, "window", min(made) + 1, "the number of updates", counts))
        report.differences = sorted(found, key=lambda each: each.update)
    return report


def _names_that_differ(names: Names) -> list[str]:
    others = [f"{named} is {name}" for name, named in names.items() if name != named]
    return [f"the same tensors have other names in B: {few(others, NAMES_SHOWN)}"] if others else []


def _more(made: int, updates: int) -> str:
    return str(made) if made <= updates else f"more than {updates}"


def _not_repeated(
    commands: Sequence[Command], before: Sequence[Journal], again: Sequence[Journal], first: int
) -> list[str]:
    """Which of the two was another in its second start."""
    found = []
    for command, one, other in zip(commands, before, again, strict=True):
        alone = differences.parting(one, other, first)
        if alone is not None:
            found.append(
                f"{command.script} differs between two starts, from update {alone} on: seed its random numbers, or "
                "the differences found may be due to chance"
            )
    return found


def _read(file: str, command: Command) -> Mapping[str, Any]:
    import torch

    if not Path(file).exists():
        raise CannotTry(
            f"the tensors of {command.script} cannot be compared: it calls no torch.nn.Module with gradients "
            "before its update"
        )
    found: Mapping[str, Any] = torch.load(file, weights_only=True)
    return found


def _shown(command: Command, other: Command) -> str:
    words = [command.script, *command.arguments]
    return " ".join([command.python, *words] if command.python != other.python else words)


def interpreter(name: str) -> str:
    """The path of a Python interpreter that has the harness.

    Raises:
        CannotTry: there is none, or it has no ``harness compare``.
    """
    found = shutil.which(name)
    if found is None:
        raise CannotTry(f"there is no Python interpreter {name}")
    asks = "import importlib.util as u, sys; sys.exit(not (u.find_spec('harness') and u.find_spec('harness.compare')))"
    if subprocess.run([found, "-P", "-c", asks], capture_output=True).returncode:  # noqa: S603 - named by the user
        raise CannotTry(
            f"{name} has no harness, or one without compare; install this version of full-training-harness there"
        )
    return str(Path(found).absolute())
