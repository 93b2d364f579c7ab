"""Instructions an update, counted by valgrind's callgrind: the same number on a busy machine and on an idle one.

Only the updates that are meant are instrumented. The process under valgrind imports everything once and forks for each
count, so that an import, a minute under valgrind, is paid once.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import CannotTry

ROOT = Path(__file__).parents[2]
MACHINE = "x86_64"

ENVIRONMENT = {
    "ATEN_CPU_CAPABILITY": "default",
    "DNNL_MAX_CPU_ISA": "SSE41",
    "HF_HUB_OFFLINE": "1",
    "LC_ALL": "C.UTF-8",
    "MKL_CBWR": "COMPATIBLE",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "TOKENIZERS_PARALLELISM": "false",
}
"""All that a counted process sees, beside what it needs to start: the same kernels, hashes and threads everywhere."""

KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH")
TIMEOUT = 3600.0
"""Seconds; a busy machine takes longer to come to the same count."""

START, STOP = 0x43540004, 0x43540005
"""CALLGRIND_START_INSTRUMENTATION and CALLGRIND_STOP_INSTRUMENTATION of valgrind's callgrind.h."""

REQUEST = bytes.fromhex(
    "4889f8"  # mov %rdi, %rax: where the request and its arguments are
    "31d2"  # xor %edx, %edx: the answer, where nobody gives one
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol $3, $13, $61, $51, %rdi: together nothing
    "4887db"  # xchg %rbx, %rbx: what valgrind takes the five of them for is a client request
    "4889d0 c3"  # mov %rdx, %rax; ret
)
"""A client request as valgrind.h has it for x86-64: without valgrind it does nothing."""


def instrument(request: int) -> None:
    """Count from here on, with ``START``, or no more, with ``STOP``; nothing happens outside valgrind."""
    if platform.machine() != MACHINE:
        return
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(REQUEST)
    code = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(code)((ctypes.c_uint64 * 6)(request))


def tool() -> str:
    """The tool and its version, such as valgrind-3.19.0.

    Raises:
        CannotTry: there is none, or it cannot be used on this machine.
    """
    if platform.machine() != MACHINE:
        raise CannotTry(f"instructions are counted on {MACHINE} only, and this machine is {platform.machine()}")
    if shutil.which("valgrind") is None:
        raise CannotTry("valgrind, which counts instructions, is not on PATH; install it (apt install valgrind)")
    asked = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=False)
    if asked.returncode or not asked.stdout.startswith("valgrind-"):
        raise CannotTry(f"valgrind --version failed with status {asked.returncode}: {_last(asked.stderr)}")
    return asked.stdout.strip()


def counted(orders: Sequence[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """The instructions an update of each order (:mod:`tests.benchmarks.counted`), and the fingerprint they belong to.

    Raises:
        CannotTry: valgrind is not there, or the count failed.
    """
    from tests.benchmarks.counted_loop import UPDATES

    version = tool()
    with tempfile.TemporaryDirectory() as folder:
        said = _run(version, orders, folder)
        found = {order: total(Path(folder) / f"{said['pids'][order]}.out") / UPDATES for order in orders}
    return found, said["fingerprint"] | {"tool": version}


def _run(version: str, orders: Sequence[str], folder: str) -> Any:
    """What the process under valgrind says in the end."""
    command = ["valgrind", "--tool=callgrind", "-q", "--instr-atstart=no", "--dump-line=no"]
    command += [f"--callgrind-out-file={folder}/%p.out", f"--log-file={folder}/%p.log"]
    command += [sys.executable, "-m", "tests.benchmarks.counted", *orders]
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | ENVIRONMENT
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, start_new_session=True, stdout=pipe, stderr=pipe
    ) as process:
        try:
            said, errors = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise CannotTry(f"{version} did not end within {TIMEOUT:g} s; count on a quicker machine") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its forks too
    if process.returncode:
        raise CannotTry(f"{version} ended with status {process.returncode}: {_last(errors)}")
    return json.loads(said.splitlines()[-1])


def total(path: Path) -> int:
    """The instructions that callgrind's file says were counted.

    Raises:
        CannotTry: there is no such file, it says nothing of them, or none were counted.
    """
    try:
        found = re.search(r"^totals: (\d+)$", path.read_text(errors="replace"), re.MULTILINE)
    except OSError as error:
        raise CannotTry(f"callgrind left no {path.name} ({error.strerror})") from error
    if found is None:
        raise CannotTry(f"{path.name} of callgrind has no line with its totals; expected one such as totals: 1234")
    if not int(found[1]):
        raise CannotTry(f"{path.name} of callgrind has counted nothing: the updates that are counted were not reached")
    return int(found[1])


def _last(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
