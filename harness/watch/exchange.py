"""Exchange: what the checks came to, of this rank or of all, which leave it in a folder for the first."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import launch
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import Finding

if TYPE_CHECKING:
    from harness.watch.session import Session

PATIENCE = 60.0
"""Seconds that the first rank waits for what the others found."""


@dataclass
class Outcomes:
    """What the checks came to, by their ids."""

    findings: list[Finding]
    notes: list[str]
    crashed: dict[str, str]
    """Checks that could not look, and why."""
    looked: dict[str, str]
    """Checks that judged something, and what that was, where they say so."""
    lacking: dict[str, str]
    """Checks that had nothing to look at, and why."""


def of_all_ranks(session: Session) -> Outcomes:
    """What was found; on the first of several ranks that of all.

    The others leave theirs in a folder that the first reads. It also compares what only shows between ranks. Where some
    run on other machines, what they find stays there.
    """
    ranks, here = launch.world_size() or 1, launch.ranks_here()
    if ranks == 1 or 0 not in here:
        return _of_this_rank(session)
    folder = exchange_folder()
    rank, summaries = launch.rank(), session.first.summaries()
    own = _of_this_rank(session)
    left = asdict(own) | {"summaries": summaries}
    write_atomically(folder / f"{rank}.json", json.dumps(left))
    if rank:
        return own
    others = _left_by_others(folder, here)
    shutil.rmtree(folder, ignore_errors=True)
    missing = [each for each in here[1:] if each not in others]
    if not missing and len(here) == ranks:
        session.first.compare_ranks([summaries, *(each["summaries"] for each in others.values())])
    whole = _of_this_rank(session)
    whole.notes += [f"rank {each} of {ranks} left no results, so it is left out" for each in missing]
    if len(here) < ranks:
        whole.notes.append(
            f"{ranks - len(here)} of {ranks} ranks run on other machines: they are not checked here, and ranks are "
            f"not compared with each other; start all of them on one machine, for example with --processes {ranks} "
            "on its CPUs"
        )
    for other, answer in others.items():
        known = {finding.check for finding in whole.findings}
        for found in (Finding(**finding) for finding in answer["findings"]):
            if found.check not in known:
                whole.findings.append(replace(found, observed=f"{found.observed} (rank {other})"))
        whole.notes += [f"{note} (rank {other})" for note in answer["notes"] if note not in whole.notes]
        whole.crashed = {check: f"{how} (rank {other})" for check, how in answer["crashed"].items()} | whole.crashed
        whole.looked = answer["looked"] | whole.looked
    return whole


KEPT = "HARNESS_LAUNCH"
"""The variable by which a process that another rank has started knows its launch."""


def name_of_launch() -> str:
    """What the ranks of one attempt of one launcher on one machine have in common, and no others."""
    if (kept := os.environ.get(KEPT)) is not None:
        return kept
    attempt = "-".join(os.environ.get(each, "") for each in ("MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"))
    return f"{os.getuid()}-{os.getppid()}-{attempt}"


def exchange_folder() -> Path:
    """The folder of these ranks: those of one attempt of one launcher on one machine. Nobody else can look into it.

    Raises:
        CannotTry: somebody else was there first; its name can be guessed.
    """
    folder = Path(tempfile.gettempdir(), f"harness-{name_of_launch()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise CannotTry(
            f"{folder}, where the ranks leave their findings, is not your own private folder; remove it, or set "
            "TMPDIR to another folder"
        )
    return folder


def _of_this_rank(session: Session) -> Outcomes:
    return Outcomes(session.all_findings, session.notes, session.crashed, session.looked, session.lacking)


def _left_by_others(folder: Path, ranks: range) -> dict[int, dict[str, Any]]:
    """What the ranks of this machine left, but for the first; those that leave nothing in time are not there."""
    until = time.monotonic() + PATIENCE
    found: dict[int, dict[str, Any]] = {}
    for rank in ranks[1:]:
        path = folder / f"{rank}.json"
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
        if path.exists():
            found[rank] = json.loads(path.read_text())
    return found
