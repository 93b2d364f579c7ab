"""A fence around a program: it may write below some folders alone, and so may all that it starts (Landlock).

``python fence.py RULES PROGRAM ARGUMENT…`` runs a program so; the first argument is its name for itself. It gets the
same input and output, and its exit status is passed on. If it failed because of the fence, as its messages tell, the
log in the rules gets a line. This file needs nothing but the standard library.

Source: landlock(7); Linux 5.13 or newer, with truncation (ABI 3, Linux 6.2).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import stat
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

RULES, LOG = "fence.json", "refused.jsonl"
"""Names of the files below the folder of a run: what may be written, and what was refused."""

LEAST_ABI = 3
"""The version from which on truncating a file can be refused."""

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, on all machines."""

WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
WRITES = WRITE_FILE | TRUNCATE | sum(1 << bit for bit in range(4, 14))
"""Writing, truncating, removing, making, and moving between folders."""

NO_NEW_PRIVILEGES, DEATH_SIGNAL = 38, 1

LAST = 4096
"""Bytes of a program's messages that are looked at."""

REFUSED = re.compile(
    r"Permission denied|Operation not permitted|EACCES|cross-device|EXDEV|Errno 1[38]\b|insufficient permission",
    re.I,
)
"""What a program says that was not allowed to write."""

PATH = re.compile(r"""['"\u2018]([^'"\u2019]+)['"\u2019]|(?<![\w.])(/[^\s'":,;\u2019]+)""")
"""A path that a program names: in quotes, or an absolute one."""

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

_libc = ctypes.CDLL(None, use_errno=True)


def refused_because() -> str | None:
    """Why this machine has no fence; None where it has one."""
    if sys.platform != "linux":
        return "Landlock needs Linux"
    abi = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 0:
        return f"Landlock is off here ({os.strerror(ctypes.get_errno())})"
    return None if abi >= LEAST_ABI else f"Landlock has version {abi} here; {LEAST_ABI} is needed (Linux 6.2)"


def restrict(writable: Sequence[str]) -> None:
    """Let this process write below these files and folders alone, from now on.

    Raises:
        OSError: the kernel refuses.
    """
    attribute = ctypes.create_string_buffer(struct.pack("Q", WRITES))
    rules = _checked(_libc.syscall(CREATE_RULESET, attribute, ctypes.c_size_t(8), ctypes.c_uint32(0)))
    for path in writable:
        with suppress(FileNotFoundError):
            at = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = WRITES if stat.S_ISDIR(os.fstat(at).st_mode) else WRITE_FILE | TRUNCATE
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, at))
            _checked(_libc.syscall(ADD_RULE, rules, 1, rule, ctypes.c_uint32(0)))
            os.close(at)
    _checked(_libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc.syscall(RESTRICT_SELF, rules, ctypes.c_uint32(0)))
    os.close(rules)


def _checked(found: int) -> int:
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def main() -> NoReturn:
    rules, program, *arguments = sys.argv[1:]
    about = json.loads(Path(rules).read_text())
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.dup2(write, 2)
        os.close(write)
        _libc.prctl(DEATH_SIGNAL, signal.SIGKILL)
        try:
            restrict(about["writable"])
            os.execv(program, arguments)  # noqa: S606 - what the script has asked for
        except OSError as error:
            os.write(2, f"{program}: {error.strerror}\n".encode())
        os._exit(126)
    os.close(write)
    for number in PASSED_ON:
        with suppress(OSError, ValueError):
            signal.signal(number, lambda number, _: _pass_on(pid, number))
    output, status = _forward(read, pid, lambda text: _tell(about, program, arguments, None, text))
    if status:
        _tell(about, program, arguments, status, output)
    if os.WIFSIGNALED(status):
        with suppress(OSError):  # no process handles SIGKILL
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _pass_on(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _forward(read: int, pid: int, tell: Callable[[bytes], bool]) -> tuple[bytes, int]:
    """Pass on what the program prints to stderr until it ends: the end of that, and how it ended.

    Where ``tell`` finds something in it, it is looked at no more: a program may be killed before it ends.
    """
    output, status = b"", None
    while True:
        ready, _, _ = select.select([read], [], [], 0.0 if status is not None else 0.02)
        if ready:
            got = os.read(read, 65536)
            if got:
                output = (output + got)[-LAST:]
                _write(got)
                if tell(output):
                    output = b""
                continue
            if status is None:
                status = os.waitpid(pid, 0)[1]
            return output, status
        if status is not None:
            break
        ended, found = os.waitpid(pid, os.WNOHANG)
        status = found if ended else None
    if os.fork() == 0:  # what the program left running has its stderr still
        with suppress(OSError):
            while got := os.read(read, 65536):
                _write(got)
        os._exit(0)
    return output, status


def _write(data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]


def _tell(about: Mapping[str, Any], program: str, arguments: Sequence[str], status: int | None, output: bytes) -> bool:
    """Write to the log if a program says that it was not allowed to write; whether it does.

    A path that this process, outside of the fence, could not write to either was refused by somebody else.
    """
    for line in output.decode(errors="replace").splitlines():
        if (refused := REFUSED.search(line)) is None:
            continue
        named = PATH.search(line, refused.end()) or PATH.search(line)
        path = next(filter(None, named.groups())) if named else None
        there = os.path.realpath(path) if path else None
        if path and (not _is_writable(str(there)) or any(_is_below(str(there), each) for each in about["writable"])):
            continue
        if status is None and path is None:
            continue
        told = {"program": os.path.basename(program), "arguments": list(arguments[1:]), "path": there}
        told["status"] = None if status is None else os.waitstatus_to_exitcode(status)
        with suppress(OSError), open(about["log"], "a") as file:
            file.write(json.dumps(told) + "\n")
        return True
    return False


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_writable(path: str) -> bool:
    """Whether this process might write, make or remove what a path names."""
    return os.access(os.path.dirname(path), os.W_OK) or os.access(path, os.W_OK)


def refused_in(folder: Path) -> list[dict[str, Any]]:
    """The programs of a run that were not allowed to write what they wanted to, in their order."""
    with suppress(OSError):
        return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]
    return []


if __name__ == "__main__":
    main()
