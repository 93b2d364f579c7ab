"""Running: a script, a module or a notebook, as ``python SCRIPT`` would, up to the end of its threads."""

from __future__ import annotations

import builtins
import functools
import os
import runpy
import sys
import threading
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from harness import namesake
from harness.errors import CannotTry
from harness.watch import notebooks

if TYPE_CHECKING:
    from harness.watch.locate import Locator

LOOKS, SECONDS = 4, 0.05
"""How often, and how long after another, threads are looked at before they count as idle. A guess: a thread is in its
function within a hundredth of a second."""


@contextmanager
def room_on_the_stack() -> Iterator[None]:
    """What is below the script on the stack, and what the watch adds to each call, does not count towards the limit on
    recursion that Python or the script sets."""
    set_limit, get_limit, below = sys.setrecursionlimit, sys.getrecursionlimit, len(traceback.extract_stack())
    before = limit = get_limit()

    @functools.wraps(set_limit)
    def limited(new: int, /) -> None:
        nonlocal limit
        set_limit(2 * new + below)
        limit = new

    sys.setrecursionlimit, sys.getrecursionlimit = limited, functools.wraps(get_limit)(lambda: limit)
    set_limit(2 * before + below)
    try:
        yield
    finally:
        sys.setrecursionlimit, sys.getrecursionlimit = set_limit, get_limit
        set_limit(before)


@dataclass(frozen=True)
class Ending:
    """How a script ended."""

    crashed: str | None = None
    """Traceback of a crash, or what the script ended itself with."""
    code: Any = None
    """What ``sys.exit`` is given in a process that ends as the script did."""
    where: str | None = None
    """The script's line that raised."""


_defined: list[dict[str, Any]] = []
"""What the latest script defined. Python keeps that until it ends, and so must we: where a DataLoader's iterator is
collected as garbage before, each of its workers is waited for in vain for 5 seconds."""


begins: list[Callable[[Path], None]] = []
"""What is called with the path of a script before its first line is executed."""


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
    if path is not None:
        for begin in begins:
            begin(path)
    try:
        if path is None:
            _defined[:] = [runpy.run_module(script, run_name="__main__", alter_sys=True)]
        elif path.suffix == notebooks.SUFFIX:
            _defined[:] = [notebooks.run(path)]
        elif zipfile.is_zipfile(path):
            _defined[:] = [runpy.run_path(str(path), run_name="__main__")]
        else:
            _run_file(path)
    except BaseException as ended:
        frames = [frame for frame, _ in traceback.walk_tb(ended.__traceback__)]
        _defined[:] = [frame.f_globals for frame in frames if frame.f_globals.get("__name__") == "__main__"]
        raise


def _run_file(path: Path) -> None:
    """Execute a file as ``python FILE`` does: with its names, its absolute path, and a module of its own."""
    file = os.path.abspath(path)
    code = compile(path.read_bytes(), file, "exec", dont_inherit=True)
    module = ModuleType("__main__")
    names = vars(module)
    names |= {"__file__": file, "__cached__": None, "__builtins__": builtins}
    names["__loader__"] = SourceFileLoader("__main__", file)
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    names["__package__"] = None
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        exec(code, names)  # noqa: S102 - the user's own script
        _defined[:] = [names]
    finally:
        sys.modules["__main__"] = before


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


def readable_script(script: str) -> Path:
    """The path of a script that can be run.

    Raises:
        CannotTry: there is none, or it is not Python.
    """
    try:
        return _readable(script)
    except OSError as error:
        raise CannotTry(f"{script[:60]} cannot be read: {error.strerror}") from error


def _readable(script: str) -> Path:
    path = Path(script)
    if not script:
        raise CannotTry("SCRIPT is empty; give the path of the script that trains")
    if script.startswith("-"):
        raise CannotTry(f"there is no option {script.partition('=')[0]}, and no script of that name; see --help")
    if path.is_dir():
        path = path / "__main__.py"
        if not path.is_file():
            raise CannotTry(f"{script} is a folder without a __main__.py; give the path of a script in it")
    if not path.is_file():
        module = Path(*script.split("."))
        meant = module.with_suffix(".py").is_file() or (module / "__main__.py").is_file()
        raise CannotTry(f"there is no script {script}" + (f"; for the module of that name write -m {script}" * meant))
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
