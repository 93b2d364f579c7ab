"""Accepting what a training does now, section by section, as what it is to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.baseline import training_file
from harness.baseline.pairing import Pairs, pairs
from harness.baseline.training_file import NUMBERS, StoredTraining, sections
from harness.baseline.trainings import (
    TrainingVerdict,
    commit_of,
    error_line,
    record,
    renamed_classes,
    take,
    verdict,
    with_settings,
)
from harness.errors import CannotTry
from harness.fingerprint import git
from harness.settings import Training
from harness.starts.workdir import no_progress

ALL = "all"
"""Word in the place of the sections that are accepted: all that differ."""

NAMES = "names"
"""What is accepted where classes are called otherwise and nothing else differs."""


def accept(
    training: Training,
    folder: Path,
    path: Path,
    wanted: Sequence[str],
    why: str,
    tell: Callable[[str], None] = no_progress,
    show: Callable[[TrainingVerdict, Sequence[str]], None] = lambda found, taken: None,
) -> list[str]:
    """Run a training, and take what it does now in some sections, or in ALL that differ, as what it is to do.

    ``show`` is given what differs and the sections that are about to be taken, before any of them is. The sections
    that were accepted come back; NAMES where classes are called otherwise and nothing else differs.

    Raises:
        CannotTry: there is no such section; nothing in it has changed; a check finds an error; or this is CI, where
            nobody reads what is accepted.
    """
    if unknown := [each for each in wanted if each not in (*sections(), ALL)]:
        raise CannotTry(f"a baseline has no section {unknown[0]}; the sections are {', '.join(sections())}, or {ALL}")
    if os.environ.get("CI"):
        raise CannotTry("nothing is accepted while CI is set: accept it on your machine, and commit the file")
    stored = training_file.read(path, training.name)
    now = with_settings(training, folder, stored)
    found = verdict(training.name, stored, now, ignore=training.ignore, tolerance=training.tolerance)
    if found.findings:
        raise CannotTry(f"not accepted: {error_line(found.findings[0])}; a baseline never accepts an error")
    to_take = [each for each in sections() if each in wanted or (ALL in wanted and each in found.changed)]
    _check_can_be_taken(found, to_take)
    show(verdict(training.name, stored, now), to_take)  # what is ignored or tolerated is taken with its section, too
    paired = pairs(stored.facts, now.facts)
    accepted = [each for each in to_take if each != NUMBERS]
    take(stored, paired.as_before(now), accepted)
    if {each.section for each in renamed_classes(paired)} <= {*accepted}:
        _call_as(stored, paired.turned())
    if NUMBERS in to_take:
        anew, _ = record(replace(training, settings=False), folder, now, tell)
        stored.numbers, stored.noise, stored.fingerprint = anew.numbers, anew.noise, anew.fingerprint
        accepted.append(NUMBERS)
    if not accepted and ALL in wanted and found.renamed:
        accepted = [NAMES]
    if not accepted:
        raise CannotTry(f"nothing differs from the baseline of training {training.name}")
    stored.commit = commit_of(folder)
    at, changes = stored.commit or "no commit", uncommitted(folder, training)
    at = f"with changes to {changes} after {at}" if changes else f"at {at}"  # the file is committed with them
    stored.accepted += [f"{each} {at}: {' '.join(why.split())}" for each in accepted]
    training_file.write(path, stored, training.name)
    return accepted


def _check_can_be_taken(found: TrainingVerdict, to_take: Sequence[str]) -> None:
    if same := [each for each in to_take if each != NUMBERS and each not in found.changed]:
        raise CannotTry(f"nothing in {same[0]} differs from the baseline of training {found.name}")
    if NUMBERS in to_take and (left := [each for each in found.changed if each not in (*to_take, NUMBERS)]):
        raise CannotTry(f"the behaviour differs in {', '.join(left)}: accept that before the numbers")


def _call_as(stored: StoredTraining, paired: Pairs) -> None:
    """Give models, optimizers, loaders and tensors of a baseline the names that they have in the run."""
    stored.facts = {paired.key(key): paired.value(key, value) for key, value in stored.facts.items()}
    stored.says = {paired.key(key): paired.in_text(text) for key, text in stored.says.items()}
    stored.numbers = {paired.number(key): values for key, values in stored.numbers.items()}
    stored.noise = {paired.number(key): values for key, values in stored.noise.items()}


def uncommitted(folder: Path, training: Training) -> str | None:
    """The script of a training, where git says that it is not as it was committed."""
    script = next((word for word in training.command if word.endswith((".py", ".ipynb"))), None)
    changes = git(folder, "status", "--porcelain", "--", *([script] if script else ["."]))
    return (script or "the working tree") if changes else None
