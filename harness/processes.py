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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


class Afterwards:
    """A process that outlives this one, should it be killed: it ends what this one has started."""

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe = pipe

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


def main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # they are for the command, which ends in its own way
    if os.fork():
        return  # nobody's child: what ends those of a process (Ray, where one is lost) shall not end it
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line)
        if not number:
            break
        groups = groups - {-number} if number < 0 else groups | {number}
    for group in groups:
        end_group(group)
    folder, *logs = sys.argv[1:]
    put_back = _put_back()
    for log in logs:
        put_back.put_back_all(Path(log))
    with suppress(OSError):
        put_back.remove(folder)


def _put_back() -> Any:
    """The module beside this one: nothing else of the package can be imported here."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("put_back", Path(__file__).with_name("put_back.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
