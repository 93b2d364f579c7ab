"""Processes that a command starts: in sessions of their own, and ended with all that they have started themselves.

Where the command itself is killed, another process ends them and removes the command's scratch folder. That is this
file, run with nothing but the standard library: ``python processes.py FOLDER LOGS``. It is told the numbers of process
groups, one a line, and 0 at the end; where its input ends before, the command was killed. What is left of both goes.
Files outside of the folder are put back before, as the logs below LOGS have them (:mod:`harness.put_back`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

_pipes: weakref.WeakSet[Afterwards] = weakref.WeakSet()


class Afterwards:
    """A process that outlives this one, should it be killed: it ends what this one has started."""

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe = pipe
        _pipes.add(self)

    def forget(self) -> None:
        """Have nothing to do with it any more, in a copy of this process: the end of this one is what it waits for."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            # In the same place: a number that was closed becomes that of a file of the script's.
            os.dup2(nowhere, self._pipe.fileno(), inheritable=False)
            os.close(nowhere)

    def begun(self, group: int) -> None:
        """A process group that would be left behind."""
        self._tell(group)

    def ended(self, group: int) -> None:
        """One that is no longer there: its number may become another's."""
        self._tell(-group)

    def over(self) -> None:
        """The end. What this process has forked may hold the pipe for longer, as the workers of a DataLoader do."""
        self._tell(0)
        with suppress(OSError):
            self._pipe.close()

    def _tell(self, number: int) -> None:
        with suppress(OSError):  # somebody ended it
            self._pipe.write(f"{number}\n")
            self._pipe.flush()


def _forget_in_copies() -> None:
    for told in list(_pipes):
        told.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_copies)


@contextmanager
def afterwards(folder: Path, logs: Path | None = None) -> Iterator[Afterwards]:
    """Removes the folder where this process is killed in the block, and ends the process groups that it is told of.

    It puts back what the ``logs`` in another folder have, each one in a folder of its own.
    """
    command = [sys.executable, "-I", "-S", __file__, str(folder), *([] if logs is None else [str(logs)])]
    # A session of its own: what ends this process group shall not end it.
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.wait()  # for the process in between: a script that waits for any child of its own is to see none of ours
    own = os.getpid()
    told = Afterwards(process.stdin)
    try:
        yield told
    finally:
        if os.getpid() == own:  # and not one that was forked in the block
            told.over()
            process.stdout.read()  # until it has ended
            process.stdout.close()


@contextmanager
def started(
    command: Sequence[str], left_behind: Afterwards | None = None, *, grace: float = 0.0, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a command in a session of its own: Ctrl-C is for the caller. At the end of the block it is ended.

    Args:
        left_behind: what ends it where this process is killed.
        grace: seconds in which it can end by itself when it is asked to.
        options: those of :class:`subprocess.Popen`.
    """
    process = subprocess.Popen(command, start_new_session=True, **options)  # noqa: S603 - no shell
    if left_behind is not None:
        left_behind.begun(process.pid)
    try:
        yield process
    finally:
        if grace and process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(grace)
        end(process)
        process.wait()
        if left_behind is not None:
            left_behind.ended(process.pid)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process, and what is left of the group that it leads."""
    end_group(process.pid)
    process.kill()


def end_group(leader: int) -> None:
    """Kill what is left of a process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def end_all(home: Path | None, parent: int | None = None, known: Collection[int] = ()) -> None:
    """Kill what a script has left running: what works in a folder, or was told of it, and the children of a process.

    A process that the system has given to ``parent``, because its own has ended, is one of its children. The ``known``
    ones are not the script's.
    """
    for _ in range(100):
        others = (pid for pid in _processes() if pid not in known and pid != os.getpid())
        # A process that ends meanwhile has no parent that could be read: it is nobody's child.
        left = {pid for pid in others if _is_of(pid, home) or (parent is not None and _parent(pid) == parent)}
        if not left:
            return
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with suppress(OSError):
                os.waitpid(pid, 0)


def children(parent: int) -> frozenset[int]:
    """The processes that one has started, and those that the system has given to it."""
    return frozenset(pid for pid in _processes() if _parent(pid) == parent)


def _processes() -> Iterator[int]:
    with suppress(OSError):
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())


def _parent(pid: int) -> int | None:
    with suppress(OSError, IndexError, ValueError):
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        return int(parent) if state != "Z" else None
    return None


def _is_of(pid: int, home: Path | None) -> bool:
    """Whether a process works below a folder, or was started with its name."""
    if home is None:
        return False
    at = os.fsencode(os.path.realpath(home))
    with suppress(OSError):
        folder = os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
        told = Path(f"/proc/{pid}/environ").read_bytes()
        return folder == at or folder.startswith(at + b"/") or b"HARNESS_ISOLATED=" + at + b"\0" in told
    return False


def _end_views(folder: Path) -> None:
    """End what runs in the views that are made ready below a folder, and remove what was written in them."""
    view = _beside("starts/view.py")
    for described in [*folder.glob(view.PLAN), *folder.glob(f"*/{view.PLAN}")]:
        with suppress(OSError, ValueError, TypeError):
            plan = view.Plan.read(described.parent)
            for _ in range(100):
                left = [*view.inside(plan)]
                for pid in left:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                if not left:
                    break
            view.remove(plan)


def main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # they are for the command, which ends in its own way
    if os.fork():
        return  # nobody's child: what ends those of a process (Ray, where one is lost) shall not end it
    groups: set[int] = set()
    killed = True
    for line in sys.stdin:
        number = int(line)
        if not number:
            killed = False
            break
        groups = groups - {-number} if number < 0 else groups | {number}
    for group in groups:
        end_group(group)
    folder, *logs = sys.argv[1:]
    _end_views(Path(folder))
    end_all(Path(folder))
    ended = time.time() if killed else None
    put_back = _beside("put_back.py")
    for log in logs:
        put_back.put_back_all(Path(log), ended)
    with suppress(OSError):
        os.unlink(os.readlink(os.path.join(folder, "short")))
    with suppress(OSError):
        put_back.remove(folder)


def _beside(name: str) -> Any:
    """A module of a file below this one's folder: nothing else of the package can be imported here."""
    from importlib.util import module_from_spec, spec_from_file_location

    file = Path(__file__).parent / name
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[file.stem] = module  # where its dataclasses look for their names
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
