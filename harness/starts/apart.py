"""A script apart: it runs in a copy of this process, in its place; this one stays outside, waits, and reports.

So the script ends as it would alone, with its exit handlers, finalizers and threads, before anything is put back; what
it puts in the place of ``sys.stderr`` hides nothing; and a process with a view of its own writes no file of the user's.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import os
import pickle
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from harness import launch
from harness.errors import CannotTry
from harness.findings import Isolation
from harness.processes import children, end_all
from harness.starts import again
from harness.starts.isolated import Place, enter, isolated, named, placed
from harness.starts.levels import asked_for, mirror_level
from harness.starts.overlay import Overlay
from harness.starts.view import Refused
from harness.watch.exchange import KEPT, name_of_launch

Report = TypeVar("Report")
Told = Callable[[Any, Isolation], int]
"""Prints a report, and what became of files; the exit status."""

Work = Callable[[Place, Callable[[Callable[[], Report]], int]], Report]
"""Runs the script of a place. It is given what to call before the script leaves its process by ``os._exit``."""

OUTCOME = "outcome.pickle"

DEATH_SIGNAL, SUBREAPER = 1, 36

NOT_HERE = (errno.EOVERFLOW, errno.EXDEV, errno.EROFS)
"""Errors that a view raises and the user's own file system would not."""

CLEAN = "torch" not in sys.modules
"""Whether nothing was imported yet that starts threads or reads variables: this process may be copied then."""


class Died(CannotTry):
    """The process of the script is gone without a word."""


def run(script: str, arguments: Sequence[str], work: Work[Any], told: Told, **how: Any) -> int:
    """Run a script in its place, and have ``told`` print what came of it; the exit status.

    Args:
        work: runs the script of a place.
        told: is given its report, with the user's own paths, and what became of files.
        how: what :func:`~harness.starts.isolated.placed` takes.
    """
    if (started := again.started_again()) is not None:
        _goes_on(script, arguments if started["arguments"] is None else started["arguments"], work, **how)
    if not (CLEAN and hasattr(os, "fork") and threading.active_count() == 1):
        return _run_here(script, arguments, work, told, **how)
    try:
        return _run_apart(script, arguments, work, told, **how)
    except Refused as error:
        if asked_for() is not None:
            raise CannotTry(f"no private view of the file system could be made: {error}") from error
    try:
        return _run_apart(script, arguments, work, told, **how, level=mirror_level())
    except Refused as error:
        raise CannotTry(f"no isolated working directory could be entered: {error}") from error


def _run_here(script: str, arguments: Sequence[str], work: Work[Any], told: Told, **how: Any) -> int:
    """In this process: where it cannot be copied, because torch is at work in it."""
    how.pop("level", None)
    with isolated(script, arguments, **how) as place:

        def finish(report: Any) -> int:
            return told(named(report, place.real), place.close(report.crashed))

        def leaving(outcome: Callable[[], Any]) -> int:
            try:
                return finish(outcome())
            except CannotTry as error:
                sys.stderr.write(f"harness: {place.real(str(error))}\n")
                return 2

        return finish(work(place, leaving))


def _run_apart(script: str, arguments: Sequence[str], work: Work[Any], told: Told, **how: Any) -> int:
    with placed(script, arguments, **how) as place:
        home = _home(place)
        if place.directory is not None and place.owner:
            place.directory.share()
        try:
            found = _outcome(place, work, home)
            place.changes.programs.update(dict.fromkeys(found["programs"]))
            place.changes.failed = found["failed"]
            if place.directory is None:
                place.changes.changed.update(dict.fromkeys(found["changed"]))  # type: ignore[union-attr]
            elif not isinstance(place.directory, Overlay):
                place.directory.mirror.copied.update(found["copied"])
            place.held_back.update(dict.fromkeys(found["held back"]))
            if (error := found["error"]) is not None:
                raise error
            report = named(found["report"], place.real)
            isolation = place.close(report.crashed)
        finally:
            if place.directory is None:
                import shutil

                shutil.rmtree(home, ignore_errors=True)
    if place.level == "overlay" and how.get("level") is None and _fails_by_the_view(report.crashed):
        return _run_apart(script, arguments, work, _said_why(told, report.crashed), **how, level=mirror_level())
    return told(report, isolation)


def _said_why(told: Told, crashed: str) -> Told:
    def both(report: Any, isolation: Isolation) -> int:
        last = crashed.strip().splitlines()[-1]
        return told(report, replace(isolation, instead=f"it fails in a private view of the file system: {last}"))

    return both


def _fails_by_the_view(crashed: str | None) -> bool:
    last = (crashed or "").strip().splitlines()[-1:]
    return any(f"[Errno {number}]" in line for line in last for number in NOT_HERE)


def _home(place: Place) -> Path:
    if place.directory is not None:
        home = place.directory.home / f"of-{os.getpid()}"
        home.mkdir()
        return home
    import tempfile

    return Path(tempfile.mkdtemp(prefix="harness-in-place-"))


def _outcome(place: Place, work: Work[Any], home: Path) -> dict[str, Any]:
    """What the copy of this process has found.

    Raises:
        Refused: it could not go into the view.
        CannotTry: it ended without a word.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    waited_for = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    own, known, launched = os.getpid(), children(os.getpid()), name_of_launch()
    _adopts(True)  # what the script leaves running becomes this process's
    pid = os.fork()
    if pid == 0:
        if launch.world_size() is not None:
            os.environ[KEPT] = launched  # a copy has another parent
        _in_the_copy(place, work, home, own, before)
    try:
        status = _wait(pid)
        if place.owner and place.directory is not None and (launch.world_size() or 1) == 1:
            end_all(place.directory.home, own, known)
    finally:
        _adopts(False)
        while signal.sigtimedwait(waited_for, 0) if hasattr(signal, "sigtimedwait") else None:
            pass  # it was the copy's
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        found: dict[str, Any] = pickle.loads((home / OUTCOME).read_bytes())  # noqa: S301 - our own
    except FileNotFoundError:
        raise Died(_how_it_ended(place, status)) from None
    if (refused := found.get("refused")) is not None:
        raise Refused(refused)
    return found


def _adopts(adopts: bool) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, int(adopts), 0, 0, 0)


def _how_it_ended(place: Place, status: int) -> str:
    script = place.real(place.script)
    if not os.WIFSIGNALED(status):
        return f"{script} ended with exit status {os.waitstatus_to_exitcode(status)} before it could report anything"
    name = signal.Signals(os.WTERMSIG(status)).name
    memory = "; the system does that when memory runs out" if name == "SIGKILL" else ""
    return f"{script} was killed by {name}{memory}"


def _wait(pid: int) -> int:
    """Wait for the copy, and pass on the signals that this process gets: its status.

    Those that the terminal sends it gets by itself.
    """
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if not hasattr(signal, "sigwaitinfo"):
            number: int = signal.sigwait({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})
            if number == signal.SIGTERM:
                os.kill(pid, number)
            continue
        came = signal.sigtimedwait({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}, 0.5)
        if came is not None and came.si_signo != signal.SIGCHLD and came.si_code <= 0:
            with suppress(ProcessLookupError):
                os.kill(pid, came.si_signo)


def _in_the_copy(place: Place, work: Work[Any], home: Path, parent: int, mask: set[Any]) -> NoReturn:
    """The copy: it goes to the place, runs the script, leaves word of it, and ends as Python does."""
    status = 1
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
        for finalizer in [*weakref.finalize._registry]:  # type: ignore[attr-defined]
            finalizer.detach()  # they are of what the other process has made
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _runs(place, work, home, mask)
        status = 0
    except BaseException:  # noqa: BLE001 - a defect of ours: nobody else can print it
        traceback.print_exc()
    finally:
        _end(status)


def _goes_on(script: str, arguments: Sequence[str], work: Work[Any], **how: Any) -> NoReturn:
    """This process has replaced a copy: it goes on in its place."""
    how.pop("hidden", None)
    with placed(script, arguments, **how) as place:
        place.owner = False
        if place.directory is None:
            raise CannotTry("a script that restarts itself can be watched only in its own directory")
        _runs(place, work, place.directory.home / f"of-{os.getppid()}", None)
        _end(0)


def _runs(place: Place, work: Work[Any], home: Path, mask: set[Any] | None) -> None:
    found: dict[str, Any] = {"report": None, "error": None}

    def leave_word() -> None:
        changes = place.changes
        about: dict[str, Any] = {
            "programs": [*changes.programs],
            "failed": changes.failed,
            "held back": [*place.held_back],
        }
        about["changed"] = [*getattr(changes, "changed", ())]
        about["copied"] = getattr(getattr(place.directory, "mirror", None), "copied", {})
        beside = home / f"{OUTCOME}.new"
        beside.write_bytes(pickle.dumps({**found, **about}))
        os.replace(beside, home / OUTCOME)

    def leaving(outcome: Callable[[], Any]) -> int:
        try:
            found["report"] = outcome()
        except CannotTry as error:
            found["error"] = error
        leave_word()
        return 0

    from harness.watch import running

    try:
        enter(place)
    except (Refused, OSError) as error:
        found["refused"] = str(error)
        leave_word()
        return
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if place.directory is not None:  # in place it would begin on what it has changed already
        again.runs(place.script)
        running.begins[:] = [again.sees_variables]
    try:
        with launch.interrupted_once(launch.interrupting()):
            found["report"] = work(place, leaving)
    except Exception as error:  # noqa: BLE001 - the other process raises it
        found["error"] = error
    except KeyboardInterrupt:
        found["error"] = KeyboardInterrupt()
    leave_word()


def _end(status: int) -> NoReturn:
    """End this process as Python does: with the handlers of the script, and without those of the other process."""
    with suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(BaseException):
            stream.flush()  # type: ignore[union-attr]
    os._exit(status)
