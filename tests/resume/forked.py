"""The corpus of ``harness resume``, run by a process that has imported the libraries and forks each start of a script.

    python -m tests.resume.forked [--every-update | --every-event] [NAMES]
    python -m tests.resume.forked --command resume ARGS

A line of JSON for each script that a name is part of says what was found. The second form is ``harness resume ARGS`` in
that way. Tests ask :class:`tests.server.Server` for it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from harness.errors import CannotTry
from harness.processes import end_group
from harness.resume import events, run
from harness.resume.plan import Kill, after_each, kills
from harness.resume.run import resume_script
from harness.starts import child
from harness.starts.journal import Journal
from harness.starts.orders import Orders
from harness.starts.overlay import Overlay
from harness.starts.workdir import Workdir
from harness.vary import run as vary
from scripts.expectations import Program
from tests import forks
from tests.programs import SET, programs_of

CORPUS = SET / "resume"


@contextmanager
def started(workdir: Workdir, orders: Orders, said: TextIO) -> Iterator[forks.Fork]:
    """In the place of ``Workdir._started``."""

    def start() -> int:
        if isinstance(workdir._directory, Overlay):
            workdir._directory.enter()
        os.chdir(workdir.folder)
        forks.set_environment(workdir.environment())
        return child.main(str(orders.file))

    processes = workdir.command.processes
    work = start if processes == 1 else partial(forks.as_ranks, start, processes)
    with open(os.devnull, "w") as silence:
        fork = forks.fork(work, streams=(silence.fileno(), said.fileno()))
    try:
        yield fork
    finally:
        end_group(fork.pid)
        fork.wait()


def install() -> None:
    """From now on starts are forked, one after the other."""
    Workdir._started = started  # type: ignore[method-assign, assignment]
    for module in (events, vary):
        vars(module)["at_once"] = lambda most, processes=1: 1
    vars(run)["ranks_alone"] = lambda whole, processes, seed: []  # there is no launcher that would miss one


def scripts() -> dict[str, Program]:
    """The programs of the manifest, by file."""
    return {str(each.files[0]): each for each in programs_of("resume")}


def result_of(program: Program, *, every_update: bool = False, every_event: bool = False) -> dict[str, Any]:
    """What ``harness resume`` says of a script of the corpus, as JSON."""

    def places(whole: Journal) -> list[Kill]:
        return kills(whole, 4, 0) + after_each(range(1, len(whole.updates)))

    file, more = CORPUS / program.files[0], program.model_extra or {}
    folder = Path(tempfile.mkdtemp(prefix="resume-corpus-"))
    shutil.copy(file, folder)
    os.chdir(folder)
    try:
        report = resume_script(
            file.name,
            program.arguments,
            resume_arguments=more.get("resume_arguments", ()),
            processes=program.processes,
            places=places if every_update else None,
            every_event=every_event,
        )
        return {"file": str(program.files[0]), **report.as_dict()}
    except CannotTry as error:
        return {"file": str(program.files[0]), "error": str(error), "findings": [], "kills": []}
    finally:
        os.chdir(CORPUS)
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str], prog_name: str = "") -> None:
    install()
    if "--command" in arguments:
        from harness.cli import main as command

        command(list(arguments[1:]), prog_name="harness")
    names = [each for each in arguments if not each.startswith("--")]
    for file, program in scripts().items():
        if any(name in file for name in names or [""]):
            how = {each: f"--{each.replace('_', '-')}" in arguments for each in ("every_update", "every_event")}
            print(json.dumps(result_of(program, **how)), flush=True)


if __name__ == "__main__":
    forks.warm()
    main(sys.argv[1:])
