"""Runs commands in forks of a process that has imported the libraries: a verdict takes as long as its training.

``python -m tests.server`` reads one command a line from standard input, as JSON, and answers with how it ended.
"""

from __future__ import annotations

import importlib
import inspect
import json
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
CHECKPOINT = ROOT / "harness" / "assets" / "tiny-bert"
ROWS = {"train": 60, "validation": 20, "test": 10}
NARROW = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
PATIENCE = 120
"""Seconds after which a script is ended."""


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
    holds both, goes when the server is closed. ``imports`` are modules that all forks have, beside the libraries.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, imports: Sequence[str] = ()) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="corpus-"))
        self.data, self.checkpoint = self.folder / "data", self.folder / "checkpoint"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **(environment or {})}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.server", str(self.folder), *imports],
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
    ) -> Done:
        """``harness``, or the command that is ``main`` of another module, with these arguments, in this folder.

        In several processes it is started as torchrun does.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job: dict[str, object] = {"folder": str(folder), "arguments": arguments, "program": program}
        job |= {"limit": limit, "processes": processes, "environment": environment or {}, "constants": constants}
        job["sources"] = sources or {}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def watch(
        self,
        case: Case,
        constants: Sequence[tuple[str, str, float]] = (),
        sources: Mapping[str, str] | None = None,
    ) -> Verdict:
        """``harness check`` of a case's script, with other constants in some modules, and other sources of some."""
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
) -> Done:
    """A module and its arguments in a process of its own, or in several as torch's launcher starts them."""
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)] if processes > 1 else []
    return run_python(folder, *launcher, "-m", *command, environment=environment, limit=limit)


def run_python(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None, limit: int = 2 * PATIENCE
) -> Done:
    """Python with these words, in a process of its own. What it started and left running ends with it.

    Raises:
        subprocess.TimeoutExpired: it did not end within ``limit`` seconds, and was ended.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **(environment or {})}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words],
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

    from harness.watch import reload

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


def _do(job: dict[str, Any], output: Path, errors: Path, reloads: str) -> int:
    """The status of a job, whose words go to two files."""
    limit, processes, environment = (job.pop(name) for name in ("limit", "processes", "environment"))

    def work() -> int | None:
        from harness.starts import isolated
        from harness.watch import reload

        isolated.__dict__["afterwards"] = lambda *_: nullcontext()  # the server removes its folders
        reload.started = partial(_reloading, reloads)  # type: ignore[attr-defined, assignment]
        forks.set_environment({"TMPDIR": str(output.parent / "tmp"), **environment})
        tempfile.tempdir = None  # what a library asked for when it was imported
        if processes > 1:
            return forks.as_ranks(lambda: _command(**job), processes)
        return _command(**job)  # type: ignore[func-returns-value]

    with output.open("ab") as out, errors.open("ab") as err:
        each = forks.fork(work, streams=(out.fileno(), err.fileno()), limit=limit)
    try:
        return each.wait()
    finally:
        end_group(each.pid)


def serve(work: Path, imports: Sequence[str] = ()) -> None:
    forks.warm((*forks.LIBRARIES, *imports))
    (work / "tmp").mkdir()
    forks.fork(lambda: make_data(work / "data")).wait()
    forks.fork(lambda: make_checkpoint(work / "checkpoint")).wait()
    output, errors, reloads = work / "stdout", work / "stderr", str(work / "reloads")
    reloading = forks.fork(lambda: serve_reloads(reloads))
    try:
        _serve_jobs(output, errors, reloads)
    finally:
        end_group(reloading.pid)


def _serve_jobs(output: Path, errors: Path, reloads: str) -> None:
    for line in sys.stdin:
        job, began = json.loads(line), time.perf_counter()
        status = _do(job, output, errors, reloads)
        texts = {name: file.read_text(errors="replace") for name, file in (("stdout", output), ("stderr", errors))}
        print(json.dumps({"status": status, **texts, "seconds": time.perf_counter() - began}), flush=True)
        output.unlink()
        errors.unlink()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
