"""Run a user's script under watch, as ``python SCRIPT`` would."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness import launch
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import Finding

if TYPE_CHECKING:
    from harness.watch.monitor import Threads

PATIENCE = 60.0
"""Seconds that the first rank waits for what the others found."""


@dataclass(frozen=True)
class NotLookedAt:
    """A check of which nothing can be said, and why."""

    check: str
    why: str


@dataclass
class CheckReport:
    """What a script did, and what was found in it."""

    script: str
    updates: int = 0
    findings: list[Finding] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Checks that found something and were not wanted."""
    not_looked_at: list[NotLookedAt] = field(default_factory=list)
    """Checks that failed themselves."""
    notes: list[str] = field(default_factory=list)
    """What could not be decided, and why."""
    shortened: bool = False
    """Whether a pass over a DataLoader was."""
    crashed: str | None = None
    """The script's own traceback, or how it ended itself."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Until the first batch, and in all."""

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def incomplete(self) -> bool:
        """Whether no error was found, and some checks could not look."""
        return bool(self.not_looked_at) and not self.failed

    def as_dict(self) -> dict[str, Any]:
        """In the form of ``--json``."""
        return {"schema": 1} | asdict(self)


def check_script(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    updates: int | None = None,
    full: bool = False,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
) -> CheckReport:
    """Run ``script`` with ``arguments``, watched; with ``module`` it is a module's name, as with ``python -m``.

    Unless ``full``, each long pass over a DataLoader is shortened, while its ``len()`` stays what it is.

    Raises:
        CannotTry: there is no such script, it is not Python, or it makes no update in this process; or a check that is
            named does not exist, here, in ``[tool.harness]`` of a pyproject.toml or in a comment of the script.
    """
    begun = time.perf_counter()
    path = None if module else _readable(script)

    from harness.settings import is_ignored_by_comment, wanted
    from harness.watch import checks_of, reported
    from harness.watch.instrument import instrumented
    from harness.watch.locate import Locator
    from harness.watch.monitor import Options, Threads
    from harness.watch.shortening import Shortening

    chosen = wanted(path, select, ignore)
    shortening = None if full else Shortening()
    options = Options(checks_of(chosen.selected), every=10 if full else 1, updates=updates, shortening=shortening)
    threads = Threads(options, Locator(path))
    report = CheckReport(script)
    with _as_main(script, arguments, path), instrumented(threads):
        report.crashed = _run(script, path)
    for monitor in threads.monitors:
        monitor.complete = monitor.complete and report.crashed is None
    threads.ends()
    findings, notes, crashed = _of_all_ranks(threads)
    commented = {check for check, finding in findings.items() if is_ignored_by_comment(finding)}
    ignored = chosen.ignored | commented
    report.updates = threads.updates_made
    report.notes = notes
    report.not_looked_at = [NotLookedAt(check, f"it failed itself: {how}") for check, how in crashed.items()]
    report.shortened = any(monitor.passes_shortened for monitor in threads.monitors)
    if report.crashed is not None and report.shortened:
        report.notes.append(
            "long passes over DataLoaders were shortened; if the script ends well without that, try --full"
        )
    report.findings = reported(findings, ignored)
    report.ignored = sorted(set(findings) & ignored)
    end = time.perf_counter()
    first = min((monitor.first_batch for monitor in threads.monitors if monitor.first_batch), default=end)
    report.seconds = {"before the first batch": first - begun, "in all": end - begun}
    trained = any(monitor.stepped for monitor in threads.monitors)
    if not trained and report.crashed is None and not report.findings:
        raise CannotTry(
            f"{script} made no optimizer step in this process, so there is nothing to judge; if it trains in a process "
            "of its own, check the script that it starts there"
        )
    return report


def _run(script: str, path: Path | None) -> str | None:
    """Run the script, or the module where there is no path; what it crashed with, None where it ended by itself."""
    from harness.watch.monitor import UpdateLimitReached

    try:
        if path is None:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(path), run_name="__main__")
    except UpdateLimitReached:
        pass
    except SystemExit as ended:
        if ended.code not in (None, 0):
            return f"{script} ended itself with sys.exit({ended.code!r})"
    except KeyboardInterrupt:
        return f"{script} was interrupted"
    except BaseException as error:
        if path is None and isinstance(error, ImportError) and not _own_frames(error.__traceback__):
            raise CannotTry(f"there is no module {script} to run: {error}") from error
        return _traceback(error)
    return None


def _of_all_ranks(threads: Threads) -> tuple[dict[str, Finding], list[str], dict[str, str]]:
    """Findings, notes, and checks that failed themselves; on the first of several ranks those of all.

    The others leave theirs in a folder that the first reads. It also compares what only shows between ranks.
    """
    ranks = launch.world_size() or 1
    if ranks == 1:
        return threads.findings, threads.notes, threads.crashed
    # Ranks of one launcher on one machine have one parent.
    folder = Path(tempfile.gettempdir()) / f"harness-{os.getppid()}-{os.environ.get('MASTER_PORT', '')}"
    folder.mkdir(exist_ok=True)
    rank, own = int(os.environ.get("RANK", "0")), threads.first.summaries()
    findings = [asdict(each) for each in threads.findings.values()]
    left = {"findings": findings, "notes": threads.notes, "crashed": threads.crashed, "summaries": own}
    write_atomically(folder / f"{rank}.json", json.dumps(left))
    if rank:
        return threads.findings, threads.notes, threads.crashed
    notes, others = threads.notes, _left_by_others(folder, ranks)
    shutil.rmtree(folder, ignore_errors=True)
    notes += [f"rank {each} of {ranks} left nothing; it is left out" for each in range(1, ranks) if each not in others]
    threads.first.compare_ranks([own, *(each["summaries"] for each in others.values())])
    all_findings, crashed = threads.findings, threads.crashed
    for other, each in others.items():
        for found in (Finding(**finding) for finding in each["findings"]):
            all_findings.setdefault(found.check, replace(found, observed=f"{found.observed} (rank {other})"))
        notes += [f"{note} (rank {other})" for note in each["notes"] if note not in notes]
        crashed = {check: f"{how} (rank {other})" for check, how in each["crashed"].items()} | crashed
    return all_findings, notes, crashed


def _left_by_others(folder: Path, ranks: int) -> dict[int, dict[str, Any]]:
    """What the ranks other than the first left, by rank; those that leave nothing in time are not there."""
    until = time.monotonic() + PATIENCE
    found: dict[int, dict[str, Any]] = {}
    for rank in range(1, ranks):
        path = folder / f"{rank}.json"
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
        if path.exists():
            found[rank] = json.loads(path.read_text())
    return found


def _readable(script: str) -> Path:
    path = Path(script)
    if path.is_dir():
        path = path / "__main__.py"
    if not path.is_file():
        raise CannotTry(f"there is no script {script}")
    try:
        compile(path.read_bytes(), script, "exec")
    except (SyntaxError, ValueError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise CannotTry(f"{script} is not Python{place}: {error.args[0]}") from error
    except OSError as error:
        raise CannotTry(f"{script} cannot be read: {error.strerror}") from error
    return path


@contextmanager
def _as_main(script: str, arguments: Sequence[str], path: Path | None) -> Iterator[None]:
    """``sys.argv`` and ``sys.path`` as the script expects them."""
    argv, first = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.getcwd() if path is None else str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, first


def _own_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames of the script, without those that started it."""
    ours = str(Path(__file__).parent)
    frames = traceback.extract_tb(trace)
    started = [i for i, frame in enumerate(frames) if frame.filename.startswith(ours) or "runpy" in frame.filename]
    leading = 0
    while leading in started:
        leading += 1
    return [frame for frame in frames[leading:] if not frame.filename.startswith(ours)]


def _traceback(error: BaseException) -> str:
    frames = _own_frames(error.__traceback__)
    lines = ["Traceback (most recent call last):\n"] if frames else []
    lines += traceback.format_list(frames)
    lines += traceback.format_exception_only(error)
    return "".join(lines).rstrip()
