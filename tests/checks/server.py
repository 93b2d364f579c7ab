"""Runs commands in forks of a process that has imported the libraries: a verdict takes as long as its training.

``python -m tests.checks.server`` reads one command a line from standard input, as JSON, and answers with how it ended.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.checks.corpus import Case

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "harness" / "assets" / "tiny-bert"
ROWS = {"train": 60, "validation": 20, "test": 10}
LIBRARIES = (
    *("torch", "datasets", "evaluate", "accelerate", "sklearn.metrics", "transformers"),
    *("harness.cli", "harness.watch.instrument", "harness.watch.script", "harness.report.check"),
)
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
        return [finding["check"] for finding in self.findings]

    @classmethod
    def of(cls, file: Path, done: Done) -> Verdict:
        """What the report says; how the command ended, where there is none."""
        if not file.exists():
            return cls(0, [], [], [], [], f"exit status {done.status}: {done.stderr[-2000:]}", done.seconds)
        report = json.loads(file.read_text(encoding="utf-8"))
        kept = ("updates", "findings", "notes", "not_looked_at", "held", "crashed")
        return cls(**{name: report[name] for name in kept}, seconds=done.seconds)


class Server:
    """A process that runs commands, one after another. A folder with the corpus's data is in ``data``."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._work = Path(tempfile.mkdtemp(prefix="corpus-"))
        self.data = self._work / "data"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **(environment or {})}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.checks.server", str(self._work)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, *arguments: str, program: str = "harness.cli", limit: int = PATIENCE) -> Done:
        """``harness``, or the command that is ``main`` of another module, with these arguments, in this folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"folder": str(folder), "arguments": arguments, "program": program, "limit": limit}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def watch(self, case: Case) -> Verdict:
        """``harness check`` of a case's script."""
        with tempfile.TemporaryDirectory(dir=self._work) as name:
            folder = Path(name)
            (folder / case.script).write_text(case.text, encoding="utf-8")
            if case.processes > 1 or case.environment:
                command = ("harness", "check", "--json", "found.json", case.script)
                done = launched(folder, *command, processes=case.processes, environment=case.environment)
            else:
                done = self.run(folder, "check", "--json", "found.json", case.script, str(self.data), str(CHECKPOINT))
            return Verdict.of(folder / "found.json", done)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=PATIENCE)
        shutil.rmtree(self._work, ignore_errors=True)


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
        _end_all(process.pid)
    return Done(process.returncode, output, errors, time.perf_counter() - began)


def _end_all(group: int) -> None:
    """End what is left of a process that led a group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


# In the server


def import_libraries() -> None:
    from harness import catalogue
    from harness.compat import no_progress_bars

    for name in LIBRARIES:
        importlib.import_module(name)
    catalogue.checks()
    no_progress_bars()
    for name in ("AutoModelForSequenceClassification", "AutoTokenizer", "BertForSequenceClassification", "Trainer"):
        getattr(sys.modules["transformers"], name)  # imports what is behind it


def make_data(folder: Path) -> None:
    from harness.sources import builtin

    builtin.raw_datasets(seed=7, split_rows=ROWS).save_to_disk(str(folder))


def in_fork(
    work: Callable[[], object], output: Path | None = None, errors: Path | None = None, limit: int = PATIENCE
) -> int:
    """Do the work in a fork; its exit status. What it started and left running ends with it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _end_all(pid)
        return status
    status = 1
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream, path in ((1, output), (2, errors)):
            os.dup2(os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT), stream)
        signal.alarm(limit)
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001 - the fork ends here, whatever it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _command(program: str, folder: str, arguments: Sequence[str]) -> None:
    main = importlib.import_module(program).main
    warnings.simplefilter("ignore")
    os.chdir(folder)
    main(list(arguments), prog_name="harness")


def serve(work: Path) -> None:
    import_libraries()
    in_fork(lambda: make_data(work / "data"))
    output, errors = work / "stdout", work / "stderr"
    for line in sys.stdin:
        job, began = json.loads(line), time.perf_counter()
        limit = job.pop("limit")
        status = in_fork(lambda job=job: _command(**job), output, errors, limit)  # type: ignore[misc]
        texts = {name: file.read_text(errors="replace") for name, file in (("stdout", output), ("stderr", errors))}
        print(json.dumps({"status": status, **texts, "seconds": time.perf_counter() - began}), flush=True)
        output.unlink()
        errors.unlink()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
