"""The corpus of ``harness resume``, run by a process that has imported the libraries and forks each start of a script.

    python -m tests.resume.forked [--every-update] [--processes] [--plain] [NAMES]
    python -m tests.resume.forked --command resume ARGS

What is imported has not computed anything, so that a fork of it is as a process of its own, and seconds quicker. A line
of JSON for each script that a name is part of, of those in one process unless told otherwise, says what was found. The
second form is ``harness resume ARGS`` in that way.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from pathlib import Path
from typing import Any, TextIO

from harness.errors import CannotTry
from harness.resume.journal import Journal
from harness.resume.orders import Orders
from harness.resume.plan import Kill, after_each, kills
from harness.resume.run import resume_script
from harness.resume.starts import Machine

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"


def preload(*, plain: bool = False) -> None:
    """Import what scripts of all styles do, or only those of plain PyTorch."""
    import torch._dynamo  # noqa: F401, imported by the first optimizer that is made

    import harness.watch.instrument  # noqa: F401

    if not plain:
        import accelerate  # noqa: F401
        import datasets  # noqa: F401
        from transformers import BertForSequenceClassification, Trainer  # noqa: F401


class Forked:
    """A process that was forked, with what is used of subprocess.Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a forked script", timeout or 0)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode


def spawn(machine: Any, orders: Orders, said: TextIO) -> Any:
    """In the place of ``Machine._spawn``, for one process."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Forked(pid)
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        os.dup2(said.fileno(), 2)
        os.chdir(machine.folder)
        os.environ["TMPDIR"] = str(machine.folder.parent / "tmp")
        status = importlib.import_module(machine.program).main(str(orders.file))
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - nothing may go up into the process that was forked
        traceback.print_exc()
    finally:
        os._exit(status)


def install() -> None:
    """From now on starts in one process are forked."""
    original = Machine._spawn

    def either(machine: Any, orders: Orders, said: TextIO) -> Any:
        return (spawn if machine.command.processes == 1 else original)(machine, orders, said)

    Machine._spawn = either  # type: ignore[method-assign]


def lines_of(module: str, *arguments: str) -> list[dict[str, Any]]:
    """What ``python -m module arguments`` prints, a line of JSON each: in a process of its own, which forks."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=2400)
    return [json.loads(line) for line in done.stdout.splitlines()]


def scripts() -> list[dict[str, Any]]:
    """The tables of the manifest."""
    found: list[dict[str, Any]] = tomllib.loads((CORPUS / "manifest.toml").read_text(encoding="utf-8"))["script"]
    return found


def result_of(entry: dict[str, Any], *, every_update: bool = False) -> dict[str, Any]:
    """What ``harness resume`` says of a script of the corpus, as JSON."""

    def places(whole: Journal) -> list[Kill]:
        return kills(whole, 4, 0) + after_each(range(1, len(whole.updates)))

    file = CORPUS / entry["file"]
    folder = Path(tempfile.mkdtemp(prefix="resume-corpus-"))
    shutil.copy(file, folder)
    os.chdir(folder)
    try:
        report = resume_script(
            file.name,
            shlex.split(entry.get("args", "")),
            resume_arguments=shlex.split(entry.get("resume_args", "")),
            processes=entry.get("processes", 1),
            places=places if every_update else None,
        )
        return {"file": entry["file"], **report.as_dict()}
    except CannotTry as error:
        return {"file": entry["file"], "error": str(error), "findings": [], "kills": []}
    finally:
        os.chdir(CORPUS)
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str]) -> None:
    if "--command" in arguments:
        import harness.watch.instrument  # noqa: F401
        from harness.cli import main as command

        install()
        command(arguments[1:])
    names = [each for each in arguments if not each.startswith("--")]
    preload(plain="--plain" in arguments)
    install()
    several = "--processes" in arguments
    for entry in scripts():
        if any(name in entry["file"] for name in names or [""]) and (several or entry.get("processes", 1) == 1):
            print(json.dumps(result_of(entry, every_update="--every-update" in arguments)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
