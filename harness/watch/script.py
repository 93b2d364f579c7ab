"""Run a user's script under watch, as ``python SCRIPT`` would."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import stat
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from harness import launch, namesake
from harness.errors import CannotTry
from harness.files import working_in, write_atomically
from harness.findings import Finding, Report
from harness.watch import notebooks

if TYPE_CHECKING:
    from harness.watch.locate import Locator
    from harness.watch.session import Session

PATIENCE = 60.0
"""Seconds that the first rank waits for what the others found."""

LOOKS, SECONDS = 4, 0.05
"""How often, and how long after another, threads are looked at before they count as idle. A guess: a thread is in its
function within a hundredth of a second."""


@dataclass(frozen=True)
class NotLookedAt:
    """A check of which nothing can be said, and why."""

    check: str
    why: str


@dataclass(frozen=True)
class Patch:
    """What repairs a finding, shown by running the script again with it; or why there is none."""

    check: str
    file: str | None = None
    diff: str | None = None
    """To the file with the patches before this one."""
    why: str | None = None
    """Why there is none."""


@dataclass
class CheckReport(Report):
    """What a script did, and what was found in it."""

    kind: ClassVar[str] = "check"
    script: str
    updates: int = 0
    findings: list[Finding] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Checks that found something and were not wanted."""
    held: list[str] = field(default_factory=list)
    """Checks that looked and found nothing."""
    nothing_to_look_at: list[NotLookedAt] = field(default_factory=list)
    """Checks for which what they judge was not there."""
    not_looked_at: list[NotLookedAt] = field(default_factory=list)
    """Checks that failed themselves, or all the others where the watch did."""
    notes: list[str] = field(default_factory=list)
    """What could not be decided, and why."""
    shortened: bool = False
    """Whether a pass over a DataLoader was."""
    crashed: str | None = None
    """The script's own traceback, or how it ended itself."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Until the first batch or backward pass, and in all."""
    patches: list[Patch] = field(default_factory=list)
    """For each finding, where they were asked for."""

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def left(self) -> list[Finding]:
        """What was found and has no patch."""
        repaired = {patch.check for patch in self.patches if patch.diff is not None}
        return [finding for finding in self.findings if finding.check not in repaired]

    @property
    def incomplete(self) -> bool:
        """Whether no error was found, and some checks could not look."""
        return bool(self.not_looked_at) and not self.failed


def check_script(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    updates: int | None = None,
    full: bool = False,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    reload: bool = True,
    leaving: Callable[[Callable[[], CheckReport]], int] | None = None,
) -> CheckReport:
    """Run ``script`` with ``arguments``, watched; with ``module`` it is a module's name, as with ``python -m``.

    Unless ``full``, each long pass over a DataLoader is shortened, while its ``len()`` stays what it is. A script that
    leaves its process by ``os._exit`` never comes back: ``leaving`` is called before, with what makes the report, and
    returns the process's exit status. Without ``reload`` nothing that the script saved is loaded again.

    Raises:
        CannotTry: there is no such script, it is not Python, or it makes no update in this process; or a check that is
            named does not exist, here, in ``[tool.harness]`` of a pyproject.toml or in a comment of the script.
    """
    begun, process, folder = time.perf_counter(), os.getpid(), Path.cwd()
    path = None if module else readable_script(script)

    from harness import settings
    from harness.watch import checks_of
    from harness.watch.instrument import instrumented
    from harness.watch.locate import Locator
    from harness.watch.monitor import Options
    from harness.watch.session import Session
    from harness.watch.shortening import Shortening

    chosen = settings.wanted(path, select, ignore)
    options = Options(
        checks_of(chosen.selected),
        every=10 if full else 1,
        updates=updates,
        shortening=None if full else Shortening(),
        reload=settings.reload(path, reload),
    )
    threads = Session(options, Locator(path))
    if path is not None and path.suffix == notebooks.SUFFIX and (skipped := notebooks.skipped(path)):
        threads.first.note(skipped)

    def outcome(crashed: str | None) -> CheckReport:
        with working_in(folder):  # the script may have gone to another
            return _outcome(script, threads, crashed, chosen.ignored, begun)

    def left(status: int) -> int:
        ended = f"{script} ended itself with os._exit({status})" if status else None
        return status if leaving is None else leaving(lambda: outcome(ended))

    threads.leaving = left
    with as_main(script, arguments, path), room_on_the_stack(), instrumented(threads):
        end = run_as_main(script, path, threads.locator)
    if os.getpid() != process:
        sys.exit(end.code)  # a process that the script forked: the verdict is its parent's
    return outcome(end.crashed)


def _outcome(script: str, threads: Session, crashed: str | None, ignored: Collection[str], begun: float) -> CheckReport:
    """End the watch, and put together what was found on all ranks.

    Raises:
        CannotTry: nothing was trained, and nothing found.
    """
    from harness.settings import is_ignored_by_comment
    from harness.watch import reported

    for monitor in threads.monitors:
        monitor.complete = monitor.complete and crashed is None
    threads.ends()
    found = _of_all_ranks(threads)
    findings = found.findings
    spoken = {finding.check for finding in findings}
    meant = {finding.check for finding in findings if not is_ignored_by_comment(finding)}
    ignored = {*ignored, *(spoken - meant)}
    silent = [check for check in sorted(found.looked | set(found.lacking)) if check not in {*spoken, *found.crashed}]
    first = min((monitor.loaded for monitor in threads.monitors if monitor.loaded), default=None)
    end = time.perf_counter()
    report = CheckReport(
        script,
        updates=threads.updates_made,
        findings=reported(findings, ignored),
        ignored=sorted(spoken & ignored),
        held=[check for check in silent if check in found.looked],
        nothing_to_look_at=[NotLookedAt(check, found.lacking[check]) for check in silent if check not in found.looked],
        not_looked_at=[NotLookedAt(check, how) for check, how in found.crashed.items()],
        notes=found.notes,
        shortened=any(monitor.passes_shortened for monitor in threads.monitors),
        crashed=crashed,
        seconds={"before the first batch": (first or end) - begun, "in all": end - begun},
    )
    if crashed is not None and report.shortened:
        report.notes.append(
            "long passes over a DataLoader were shortened, while its len() stayed what it is; if the script does not "
            "end like this by itself, try --full"
        )
    if threads.trained or crashed is not None or threads.broken is not None:
        return report
    if any(monitor.models for monitor in threads.monitors):
        report.notes.append("no optimizer made a step: what is said is about the calls of the model alone")
    elif not report.findings:
        raise CannotTry(
            f"{script} made no optimizer step in this process, so there is nothing to judge; if it trains in a process "
            "of its own, check the script that it starts there"
        )
    return report


@contextmanager
def room_on_the_stack() -> Iterator[None]:
    """What is below the script on the stack, and what the watch adds to each call, does not count towards the limit on
    recursion that the script sets."""
    set_limit, below = sys.setrecursionlimit, len(traceback.extract_stack())
    sys.setrecursionlimit = lambda limit: set_limit(2 * limit + below)
    try:
        yield
    finally:
        sys.setrecursionlimit = set_limit


@dataclass(frozen=True)
class Ending:
    """How a script ended."""

    crashed: str | None = None
    """Its traceback, or what it ended itself with."""
    code: Any = None
    """What ``sys.exit`` is given in a process that ends as the script did."""
    where: str | None = None
    """The script's line that raised."""


_defined: list[dict[str, Any]] = []
"""What the latest script defined. Python keeps that until it ends, and so must we: where a DataLoader's iterator is
collected as garbage before, each of its workers is waited for in vain for 5 seconds."""


def run_as_main(script: str, path: Path | None, locator: Locator) -> Ending:
    """Run the script, or the module where there is no path, up to the end of the threads that Python waits for."""
    from harness.watch.monitor import UpdateLimitReached

    namesake.share_with([Path.cwd() if path is None else path.parent])
    before = set(threading.enumerate())
    try:
        try:
            _run(script, path)
        except UpdateLimitReached:
            return Ending()
        except SystemExit as ended:
            if ended.code not in (None, 0):
                return Ending(f"{script} ended itself with sys.exit({ended.code!r})", ended.code)
        _wait_for_threads(before, locator)
    except KeyboardInterrupt:
        return Ending(f"{script} was interrupted", 130)
    except BaseException as error:
        if path is None and isinstance(error, ImportError) and not _own_frames(error.__traceback__):
            raise CannotTry(f"there is no module {script} to run: {error}") from error
        crashed = _traceback(error)
        frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if locator.is_users(frame)]
        places = [locator.shown((frame.f_code.co_filename, line)) for frame, line in frames]
        return Ending(crashed, crashed, places[-1] if places else None)
    return Ending()


def _run(script: str, path: Path | None) -> None:
    try:
        if path is None:
            _defined[:] = [runpy.run_module(script, run_name="__main__", alter_sys=True)]
        elif path.suffix == notebooks.SUFFIX:
            _defined[:] = [notebooks.run(path)]
        else:
            _defined[:] = [runpy.run_path(str(path), run_name="__main__")]
    except BaseException as ended:
        frames = [frame for frame, _ in traceback.walk_tb(ended.__traceback__)]
        _defined[:] = [frame.f_globals for frame in frames if frame.f_globals.get("__name__") == "__main__"]
        raise


def _wait_for_threads(before: set[threading.Thread], locator: Locator) -> None:
    """Wait for those that Python waits for before it exits.

    It ends idle workers of executors first: they are in none of the user's lines, and nor is, for a moment, a thread
    that has just been started.
    """
    idle = 0
    while idle < LOOKS:
        waited_for = [each for each in threading.enumerate() if each not in before and not each.daemon]
        if not waited_for:
            return
        frames = sys._current_frames()
        busy = any(locator.stack(frames[each.ident]) for each in waited_for if each.ident in frames)
        idle = 0 if busy else idle + 1
        waited_for[0].join(SECONDS)


@dataclass
class _Found:
    """What the checks came to, by their ids."""

    findings: list[Finding]
    notes: list[str]
    crashed: dict[str, str]
    """Checks that could not look, and why."""
    looked: set[str]
    lacking: dict[str, str]
    """Checks that had nothing to look at, and why."""


def _of_all_ranks(threads: Session) -> _Found:
    """What was found; on the first of several ranks that of all.

    The others leave theirs in a folder that the first reads. It also compares what only shows between ranks.
    """
    ranks = launch.world_size() or 1
    if ranks == 1:
        return _of_this_rank(threads)
    folder = exchange_folder()
    rank, summaries = int(os.environ.get("RANK", "0")), threads.first.summaries()
    own = _of_this_rank(threads)
    left = asdict(own) | {"looked": sorted(own.looked), "summaries": summaries}
    write_atomically(folder / f"{rank}.json", json.dumps(left))
    if rank:
        return own
    others = _left_by_others(folder, ranks)
    shutil.rmtree(folder, ignore_errors=True)
    threads.first.compare_ranks([summaries, *(each["summaries"] for each in others.values())])
    whole = _of_this_rank(threads)
    missing = [each for each in range(1, ranks) if each not in others]
    whole.notes += [f"rank {each} of {ranks} left nothing; it is left out" for each in missing]
    for other, each in others.items():
        known = {finding.check for finding in whole.findings}
        for found in (Finding(**finding) for finding in each["findings"]):
            if found.check not in known:
                whole.findings.append(replace(found, observed=f"{found.observed} (rank {other})"))
        whole.notes += [f"{note} (rank {other})" for note in each["notes"] if note not in whole.notes]
        whole.crashed = {check: f"{how} (rank {other})" for check, how in each["crashed"].items()} | whole.crashed
        whole.looked |= set(each["looked"])
    return whole


def exchange_folder() -> Path:
    """The folder of these ranks: those of one attempt of one launcher on one machine. Nobody else can look into it.

    Raises:
        CannotTry: somebody else was there first; its name can be guessed.
    """
    attempt = "-".join(os.environ.get(each, "") for each in ("MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"))
    name = f"harness-{os.getuid()}-{os.getppid()}-{attempt}"
    folder = Path(tempfile.gettempdir()) / name
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise CannotTry(
            f"{folder}, where the ranks leave what they found, is not a folder of your own that others cannot open; "
            "remove it, or set TMPDIR to another folder"
        )
    return folder


def _of_this_rank(threads: Session) -> _Found:
    return _Found(threads.all_findings, threads.notes, threads.crashed, threads.looked, threads.lacking)


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


def readable_script(script: str) -> Path:
    path = Path(script)
    if not script:
        raise CannotTry("SCRIPT is empty; name the script that trains")
    if script.startswith("-"):
        raise CannotTry(f"there is no option {script.partition('=')[0]}, and no script of that name; see --help")
    if path.is_dir():
        path = path / "__main__.py"
        if not path.is_file():
            raise CannotTry(f"{script} is a folder without a __main__.py; name the script in it")
    if not path.is_file():
        raise CannotTry(f"there is no script {script}")
    try:
        if path.suffix == notebooks.SUFFIX:
            list(notebooks.compiled(path))
        elif zipfile.is_zipfile(path):  # python app.zip runs its __main__.py
            if "__main__.py" not in zipfile.ZipFile(path).namelist():
                raise CannotTry(f"{script} is a zip file without a __main__.py")
        else:
            compile(path.read_bytes(), script, "exec")
    except (SyntaxError, ValueError) as error:
        cell = f", {error.filename}" if path.suffix == notebooks.SUFFIX and isinstance(error, SyntaxError) else ""
        place = f"{cell}, line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = "no notebook" if path.suffix == notebooks.SUFFIX and not place else "not Python"
        raise CannotTry(f"{script} is {what}{place}: {error.args[0]}") from error
    except OSError as error:
        raise CannotTry(f"{script} cannot be read: {error.strerror}") from error
    return path


@contextmanager
def as_main(script: str, arguments: Sequence[str], path: Path | None) -> Iterator[None]:
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
    ours = tuple(str(Path(__file__).parents[1] / part) for part in ("watch", "starts"))
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
