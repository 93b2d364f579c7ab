"""Runs commands in forks of a process that has imported the libraries: a verdict takes as long as its training.

``python -m tests.server`` reads one command a line from standard input, as JSON, and answers with how it ended.
"""

from __future__ import annotations

import importlib
import inspect
import json
import linecache
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from harness.processes import end_group
from tests import forks
from tests.checks.corpus import Case

ROOT = Path(__file__).parents[1]
CHECKPOINT = ROOT / "harness" / "documented_run" / "assets" / "tiny-bert"
ROWS = {"train": 60, "validation": 20, "test": 10}
NARROW = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
PATIENCE = 120
"""Seconds after which a script is ended."""


MEMORY, ROOM = "/dev/shm", 2**30
"""Where many systems keep files in memory, and the bytes that must be free there."""


def in_memory() -> str | None:
    """A folder in memory, where thousands of small files and links cost nothing; None where there is none."""
    with suppress(OSError):
        if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
            return MEMORY
    return None


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class Verdict:
    """What watching one script came to."""

    updates: int
    findings: list[dict[str, Any]]
    notes: list[str]
    not_looked_at: list[dict[str, str]]
    held: list[str]
    crashed: str | None
    seconds: float = 0.0

    @property
    def checks(self) -> list[str]:
        """Those that found something, each once."""
        return list(dict.fromkeys(finding["check"] for finding in self.findings))

    @classmethod
    def of(cls, file: Path, done: Done) -> Verdict:
        """What the report says; how the command ended, where there is none."""
        if not file.exists():
            return cls(0, [], [], [], [], f"exit status {done.status}: {done.stderr[-2000:]}", done.seconds)
        report = json.loads(file.read_text(encoding="utf-8"))
        kept = ("updates", "findings", "notes", "not_looked_at", "held", "crashed")
        return cls(**{name: report[name] for name in kept}, seconds=done.seconds)


class Server:
    """A process that runs commands, one after another.

    ``data`` is a folder with the corpus's rows, ``checkpoint`` one with a narrow model to fine-tune; ``folder``, which
    holds both, goes when the server is closed. ``imports`` are modules that all forks have, beside the libraries;
    ``python`` is the interpreter.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        imports: Sequence[str] = (),
        python: Path | str = sys.executable,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="corpus-", dir=in_memory()))
        self.data, self.checkpoint = self.folder / "data", self.folder / "checkpoint"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **(environment or {})}
        self._process = subprocess.Popen(
            [str(python), "-m", "tests.server", str(self.folder), *imports],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        folder: Path,
        *arguments: str,
        program: str = "harness.cli",
        limit: int = PATIENCE,
        processes: int = 1,
        environment: Mapping[str, str] | None = None,
        constants: Sequence[tuple[str, str, float]] = (),
        sources: Mapping[str, str] | None = None,
        together: str = "",
    ) -> Done:
        """``harness``, or the command that is ``main`` of another module, with these arguments, in this folder.

        In several processes it is started as torchrun does. Commands that are run ``together``, by a common name, are
        so in one fork, one after the other, until there is a command without it.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job: dict[str, object] = {"folder": str(folder), "arguments": arguments, "program": program}
        job |= {"limit": limit, "processes": processes, "environment": environment or {}, "constants": constants}
        job |= {"sources": sources or {}, "together": together}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def watch(
        self,
        case: Case,
        constants: Sequence[tuple[str, str, float]] = (),
        sources: Mapping[str, str] | None = None,
        together: str = "",
    ) -> Verdict:
        """``harness check`` of a case's script, with other constants in some modules, and other sources of some.

        ``together`` is as in :meth:`run`; a case that asks for several processes is alone.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            (folder / case.script).write_text(case.text, encoding="utf-8")
            checkpoint = CHECKPOINT if case.pretrained else self.checkpoint
            command = ("check", "--json", "found.json", case.script, str(self.data), str(checkpoint))
            done = self.run(
                folder,
                *command,
                processes=case.processes,
                environment=case.environment,
                constants=constants,
                sources=sources,
                together="" if case.processes > 1 else together,
            )
            return Verdict.of(folder / "found.json", done)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


_SERVER = pytest.StashKey[Server]()


def server_of(config: pytest.Config) -> Server:
    """The server of this test session, started for the first who asks."""
    if _SERVER not in config.stash:
        config.stash[_SERVER] = Server()
        config.add_cleanup(config.stash[_SERVER].close)
    return config.stash[_SERVER]


def launched(
    folder: Path,
    *command: str,
    processes: int = 1,
    environment: Mapping[str, str] | None = None,
    limit: int = 2 * PATIENCE,
    python: Path | str = sys.executable,
) -> Done:
    """A module and its arguments in a process of its own, or in several as torch's launcher starts them."""
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)] if processes > 1 else []
    return run_python(folder, *launcher, "-m", *command, environment=environment, limit=limit, python=python)


def run_python(
    folder: Path,
    *words: str,
    environment: Mapping[str, str] | None = None,
    limit: int = 2 * PATIENCE,
    python: Path | str = sys.executable,
) -> Done:
    """Python with these words, in a process of its own. What it started and left running ends with it.

    Raises:
        subprocess.TimeoutExpired: it did not end within ``limit`` seconds, and was ended.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **(environment or {})}
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(python), *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=limit)
    finally:
        end_group(process.pid)
    return Done(process.returncode, output, errors, time.perf_counter() - began)


# In the server


def make_data(folder: Path) -> None:
    from scripts import corpus

    corpus.raw_datasets(seed=7, split_rows=ROWS).save_to_disk(str(folder))


def make_checkpoint(folder: Path) -> None:
    """The built-in checkpoint's tokenizer, and a model as deep and narrower that has learnt nothing yet."""
    import torch
    from transformers import BertConfig, BertForPreTraining

    shutil.copytree(CHECKPOINT, folder, ignore=shutil.ignore_patterns("*.safetensors", "pretraining.json"))
    torch.manual_seed(7)
    BertForPreTraining(BertConfig.from_pretrained(folder, **NARROW)).save_pretrained(folder)


def _command(
    program: str,
    folder: str,
    arguments: Sequence[str],
    constants: Sequence[tuple[str, str, float]],
    sources: Mapping[str, str],
) -> None:
    for module, name, value in constants:
        setattr(importlib.import_module(module), name, value)
    for module, source in sources.items():
        _take(module, source)
    main = importlib.import_module(program).main
    warnings.simplefilter("ignore")
    os.chdir(folder)
    linecache.clearcache()  # of a file of the same name that another folder has
    main(list(arguments), prog_name="harness")


@dataclass
class _Reloading:
    """How a forked process that loads what a script saved ended, as subprocess.Popen says it."""

    answer: socket.socket
    returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        self.answer.settimeout(timeout)
        try:
            self.returncode = int(self.answer.recv(16) or 1)
        except TimeoutError:
            raise subprocess.TimeoutExpired("a fork", timeout or 0) from None
        return self.returncode


@contextmanager
def _reloading(address: str, command: Sequence[str], env: Mapping[str, str], **_: Any) -> Iterator[_Reloading]:
    """In the place of ``started`` in :mod:`harness.watch.reload`."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(address)
        asked.sendall(json.dumps({"folder": os.getcwd(), "file": command[-1], "env": dict(env)}).encode() + b"\n")
        yield _Reloading(asked)


def _reload(folder: str, file: str, env: Mapping[str, str]) -> None:
    from huggingface_hub import constants

    from harness.starts import view
    from harness.starts.isolated import VARIABLE
    from harness.starts.overlay import Overlay
    from harness.watch import reload

    home = Path(env.get(VARIABLE, ""))
    if home.is_absolute() and Overlay.is_at(home):
        view.enter(home)  # where the script is that has saved it
    os.chdir(folder)
    forks.set_environment(env)
    constants.HF_HUB_OFFLINE = env.get("HF_HUB_OFFLINE") == "1"  # it was read when it was imported
    reload.main(file)


def serve_reloads(address: str) -> None:
    """Load what scripts saved, each time in a fork of a process in which no script has run."""
    server = os.getppid()
    with socket.socket(socket.AF_UNIX) as listening, open(os.devnull, "w") as silence:
        listening.bind(address)
        listening.listen()
        listening.settimeout(PATIENCE)
        while os.getppid() == server:
            with suppress(TimeoutError):
                asked, _ = listening.accept()
                with asked, asked.makefile() as lines:
                    order = json.loads(lines.readline())
                    fork = forks.fork(partial(_reload, **order), streams=(silence.fileno(),) * 2, limit=PATIENCE)
                    asked.sendall(str(fork.wait()).encode())


def _take(module: str, source: str) -> None:
    """What the functions of a module do from now on, those of its classes too; the classes stay what they are."""
    there = vars(importlib.import_module(module))
    new = dict(there)
    exec(compile(source, there["__file__"], "exec"), new)
    for name, value in new.items():
        if inspect.isfunction(value) and value.__module__ == module:
            there[name] = FunctionType(value.__code__, there, name, value.__defaults__, value.__closure__)
        elif inspect.isclass(value) and value.__module__ == module and name in there:
            for inner, function in vars(value).items():
                if inspect.isfunction(function):
                    setattr(there[name], inner, function)


class _Jobs:
    """Does jobs in forks of this process, whose words go to two files of a folder."""

    def __init__(self, work: Path, reloads: str) -> None:
        self.output, self.errors = work / "stdout", work / "stderr"
        self._temporary, self._reloads = str(work / "tmp"), reloads
        self._sequel: tuple[str, forks.Sequel] | None = None

    def do(self, job: dict[str, Any]) -> int:
        """The exit status of a job."""
        limit, together = job.pop("limit"), job.pop("together")
        if self._sequel and self._sequel[0] != together:
            self.end()
        if together:
            return self._next(together, job, limit)
        each = forks.fork(lambda: self._work(job), limit=limit)
        try:
            return each.wait()
        finally:
            end_group(each.pid)

    def _next(self, together: str, job: dict[str, Any], limit: int) -> int:
        if not self._sequel:
            self._sequel = together, forks.Sequel(self._work)
        status, further = self._sequel[1].do(job, limit)
        if not further:
            self.end()
        return status

    def end(self) -> None:
        if self._sequel:
            self._sequel[1].end()
            self._sequel = None

    def _work(self, job: dict[str, Any]) -> int | None:
        """In the fork."""
        from harness.starts import isolated
        from harness.watch import reload

        for number, file in enumerate((self.output, self.errors), start=1):
            opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.dup2(opened, number)
            os.close(opened)
        isolated.__dict__["afterwards"] = lambda *_: nullcontext()  # the server removes its folders
        reload.started = partial(_reloading, self._reloads)  # type: ignore[attr-defined, assignment]
        processes, environment = job.pop("processes"), job.pop("environment")
        forks.set_environment({"TMPDIR": self._temporary, **environment})
        tempfile.tempdir = None  # what a library asked for when it was imported
        if processes > 1:
            return forks.as_ranks(lambda: _command(**job), processes)
        return _command(**job)  # type: ignore[func-returns-value]


def serve(work: Path, imports: Sequence[str] = ()) -> None:
    forks.warm((*forks.LIBRARIES, *imports))
    (work / "tmp").mkdir()
    with open(os.devnull, "w") as silence:  # bars of progress
        for make, name in ((make_data, "data"), (make_checkpoint, "checkpoint")):
            forks.fork(partial(make, work / name), streams=(silence.fileno(),) * 2).wait()
    reloads = str(work / "reloads")
    reloading, jobs = forks.fork(lambda: serve_reloads(reloads)), _Jobs(work, reloads)
    try:
        _serve_jobs(jobs)
    finally:
        jobs.end()
        end_group(reloading.pid)


def _serve_jobs(jobs: _Jobs) -> None:
    for line in sys.stdin:
        job, began = json.loads(line), time.perf_counter()
        status = jobs.do(job)
        texts = {}
        for name, file in (("stdout", jobs.output), ("stderr", jobs.errors)):
            texts[name] = file.read_text(errors="replace") if file.exists() else ""
            file.unlink(missing_ok=True)
        print(json.dumps({"status": status, **texts, "seconds": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
