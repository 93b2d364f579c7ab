"""Watches scripts, each in a fork of a process that has imported the libraries: a verdict takes as long as its training.

``python -m tests.checks.server`` reads one script a line from standard input, as JSON, and answers with its verdict.
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
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.checks.corpus import Case

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "harness" / "assets" / "tiny-bert"
ROWS = {"train": 60, "validation": 20, "test": 10}
LIBRARIES = (
    *("torch", "datasets", "evaluate", "accelerate", "sklearn.metrics", "transformers"),
    *("harness.watch.instrument", "harness.watch.script"),
)
PATIENCE = 120
"""Seconds after which a script is ended."""


@dataclass(frozen=True)
class Verdict:
    """What watching one script came to."""

    updates: int
    findings: list[dict[str, Any]]
    notes: list[str]
    not_looked_at: list[dict[str, str]]
    crashed: str | None
    seconds: float = 0.0

    @property
    def checks(self) -> list[str]:
        return [finding["check"] for finding in self.findings]


class Server:
    """A process that watches scripts, one after another."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.checks.server"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def watch(self, case: Case) -> Verdict:
        if case.processes > 1 or case.environment:
            return _launched(case)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"script": case.script, "text": case.text}) + "\n")
        self._process.stdin.flush()
        return Verdict(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=PATIENCE)


def _launched(case: Case) -> Verdict:
    """In processes that torch's launcher starts."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, case.script).write_text(case.text, encoding="utf-8")
        launcher = (
            ["-m", "torch.distributed.run", "--nproc-per-node", str(case.processes)] if case.processes > 1 else []
        )
        command = [sys.executable, *launcher, "-m", "harness", "check", "--json", "found.json", case.script]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **case.environment}
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE
        )
        found = Path(folder, "found.json")
        if not found.exists():
            return Verdict(0, [], [], [], f"exit status {done.returncode}: {done.stderr[-2000:]}")
        report = json.loads(found.read_text())
    kept = {name: report[name] for name in ("updates", "findings", "notes", "not_looked_at", "crashed")}
    return Verdict(**kept, seconds=time.perf_counter() - began)


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


def in_fork(work: Callable[[], None]) -> None:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        signal.alarm(PATIENCE)
        work()
    finally:
        os._exit(0)


def _watch(folder: Path, data: Path, job: dict[str, str]) -> None:
    from harness.watch.script import check_script

    warnings.simplefilter("ignore")
    (folder / job["script"]).write_text(job["text"], encoding="utf-8")
    os.chdir(folder)
    try:
        report = check_script(job["script"], [str(data), str(CHECKPOINT)])
        not_looked_at = [asdict(each) for each in report.not_looked_at]
        findings = [asdict(finding) for finding in report.findings]
        verdict = Verdict(report.updates, findings, report.notes, not_looked_at, report.crashed)
    except Exception as error:
        verdict = Verdict(0, [], [], [], f"{type(error).__name__}: {error}")
    (folder / "verdict.json").write_text(json.dumps(asdict(verdict)))


def main() -> None:
    import_libraries()
    work = Path(tempfile.mkdtemp(prefix="corpus-"))
    try:
        in_fork(lambda: make_data(work / "data"))
        for number, line in enumerate(sys.stdin):
            job, folder, began = json.loads(line), work / str(number), time.perf_counter()
            folder.mkdir()
            in_fork(lambda folder=folder, job=job: _watch(folder, work / "data", job))  # type: ignore[misc]
            file = folder / "verdict.json"
            lost = Verdict(0, [], [], [], f"ended without a verdict in {PATIENCE} s")
            verdict = json.loads(file.read_text()) if file.exists() else asdict(lost)
            shutil.rmtree(folder, ignore_errors=True)
            print(json.dumps({**verdict, "seconds": time.perf_counter() - began}), flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
