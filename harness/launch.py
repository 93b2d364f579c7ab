"""Several processes: started, watched, and ended together.

torch's elastic launcher (what ``torchrun`` uses) starts the ranks and ends all of them when one fails. What it does not
see is a rank that hangs: here every rank carries a watchdog, which says where the rank is and ends it when it hangs.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from harness.compat import accelerates_variable, join_processes
from harness.errors import CannotTry
from harness.processes import afterwards

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

Result = TypeVar("Result")

PATIENCE = 600.0
"""Seconds without a call of :func:`alive` after which a rank counts as hung."""

GRACE = 5.0
"""Seconds more for a rank that waits for the others, so that the one it waits for is found first."""

SETTLE = 1.0
"""Seconds that a failed rank waits before it ends."""

HANGS = 120.0
"""Seconds for which a rank of a script that is checked waits for the others."""

LATE = 90.0
"""Seconds that the other ranks have to end after the first, which waits no longer than that for what they found."""

POLL_SECONDS = 0.5
"""Seconds between two looks at which ranks run."""

WAITS = "HARNESS_WAITS"
"""The environment variable that says so to the ranks."""

LAST_LINES = 12
"""Last lines that are shown of what a failed rank wrote."""

WANTED = re.compile(
    r"environment variable (RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected"
    r"|KeyError: '(RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'"
)
"""What a script says that a launcher is to start: torch's own words, or Python's."""

LAST_SEEN, FAILED = "last-seen-", "failed-"

_watched: tuple[float, TextIO] | None = None


def world_size() -> int | None:
    """How many processes a launcher (torchrun, accelerate launch) started; None where there was none."""
    value = os.environ.get("WORLD_SIZE", "")
    return int(value) if value.isdigit() else None


def rank() -> int:
    """This process's number among those that a launcher started; 0 where there was none."""
    value = os.environ.get("RANK", "")
    return int(value) if value.isdigit() else 0


def ranks_here() -> range:
    """The ranks that run on this machine, as far as the launcher says so (LOCAL_WORLD_SIZE); else all of them."""
    every, here, first = world_size() or 1, os.environ.get("LOCAL_WORLD_SIZE", ""), rank()
    local = os.environ.get("LOCAL_RANK", "")
    if not (here.isdigit() and local.isdigit()) or int(here) >= every:
        return range(every)
    return range(first - int(local), first - int(local) + int(here))


def is_main_process() -> bool:
    return rank() == 0


def in_process_group() -> bool:
    """Whether this process has joined others, so that they can talk to each other."""
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized()


def fewer_than_asked() -> str | None:
    """What to do where ``accelerate launch`` was asked for several processes and started one; None otherwise.

    ``accelerate launch --cpu --num_processes 2`` does so without a word (Accelerate 1.15). It leaves the address at
    which the processes should have met in the environment, this machine's own, and no rank.
    """
    launched = accelerates_variable("ACCELERATE_MIXED_PRECISION") in os.environ
    alone = world_size() is None
    if launched and alone and os.environ.get("MASTER_ADDR") == "127.0.0.1" and "MASTER_PORT" in os.environ:
        return (
            "Start the processes with ACCELERATE_USE_CPU=true torchrun --nproc-per-node N on CPUs, or with "
            "accelerate launch --multi_gpu on GPUs: accelerate launch was asked for several processes but started "
            "one."
        )
    return None


def of_all_ranks(value: Result) -> list[Result]:
    """``value`` of every rank, in the order of the ranks; ``[value]`` where there is one process."""
    from torch import distributed

    if not in_process_group():
        return [value]
    alive(GRACE)
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    alive()
    return values


def alive(longer: float = 0.0) -> None:
    """Tell the watchdog that this process does not hang; it waits for the next call ``longer`` than usual."""
    if _watched is not None:
        patience, file = _watched
        faulthandler.dump_traceback_later(patience + longer, exit=True, file=file)


def interrupting() -> list[signal.Signals]:
    """The signals that end this process as Ctrl-C does; a launcher sends on those that the terminal sent already."""
    return [signal.SIGTERM] if world_size() is None else [signal.SIGTERM, signal.SIGINT]


@contextmanager
def interrupted_once(signals: Sequence[signal.Signals]) -> Iterator[list[int]]:
    """The first of the signals raises KeyboardInterrupt; those that follow change nothing of what is done then.

    Yields what came: nothing or one number.
    """
    came: list[int] = []
    process = os.getpid()

    def interrupt(number: int, frame: object) -> None:
        if os.getpid() != process:  # forked meanwhile, by a script that is watched: it ends as it would alone
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
            return
        came.append(number)
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, interrupt) for each in signals}
    try:
        yield came
    finally:
        # An interrupted rank is about to end, and its launcher may send the signal again while Python shuts down.
        if not (came and world_size() is not None):
            for each, handler in before.items():
                signal.signal(each, handler)


@contextmanager
def watched(patience: float, file: TextIO = sys.stderr) -> Iterator[None]:
    """End this process if :func:`alive` is not called for ``patience`` seconds; ``file`` gets the traceback.

    It gets one too when the process is told to end or crashes: of a rank that waited in vain, say.
    """
    global _watched
    _watched = patience, file
    faulthandler.enable(file)
    faulthandler.register(signal.SIGTERM, file=file, all_threads=False, chain=True)
    alive()
    try:
        yield
    finally:
        _watched = None
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGTERM)


@contextmanager
def process_group(patience: float) -> Iterator[None]:
    """This rank's place among the others, from the launcher's environment; left again at the end."""
    from torch import distributed

    names = {"ACCELERATE_USE_CPU", accelerates_variable("ACCELERATE_USE_CPU")}
    cpu = any(os.environ.get(name, "").lower() in ("1", "true", "yes", "on", "y", "t") for name in names)
    join_processes(cpu=cpu, timeout=timedelta(seconds=patience + 2 * GRACE))
    try:
        yield
    finally:
        if in_process_group():
            distributed.destroy_process_group()


def in_processes(function: Callable[[], Result], *, processes: int, patience: float = PATIENCE) -> list[Result]:
    """What ``function()`` returned in each of the new processes, in the order of the ranks.

    The ranks meet on this machine, on its GPUs or, where there is none, on its CPUs. A rank that fails, dies or hangs
    ends all of them, the latter after ``patience`` seconds; one that does not react is killed 30 seconds later. None
    is left behind.

    Raises:
        CannotTry: a rank failed, died or hung; says which, where and with what error. Or there are fewer GPUs than
            processes.
    """
    import torch
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    environment = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // processes))}
    if not torch.cuda.is_available():
        environment["ACCELERATE_USE_CPU"] = "true"
    elif os.environ.get("ACCELERATE_USE_CPU") != "true" and torch.cuda.device_count() < processes:
        raise CannotTry(
            f"{processes} processes need as many GPUs, found {torch.cuda.device_count()}; ask for fewer, or set "
            "ACCELERATE_USE_CPU=true"
        )
    with _ranks_folder(environment) as folder:
        try:
            results = _launched(_rank, (function, str(folder), patience), processes, folder)
        except ChildFailedError as error:
            raise CannotTry(_what_happened(error, folder, patience)) from None
    return [results[rank] for rank in sorted(results)]


def wants_a_launcher(stderr: str) -> bool:
    """Whether a script ended because it lacks what a launcher sets, as its last words tell."""
    return WANTED.search(stderr) is not None


def command_in_processes(command: Sequence[str], *, processes: int, patience: float = HANGS) -> int:
    """Start a command of Python's as so many ranks, on CPUs; the exit status of the first.

    The ranks meet by gloo. The first one's output is this process's; of the others' only what is wrong is told. A rank
    that waits for another longer than ``patience`` seconds gives up (:data:`WAITS`), and all are ended with it; one
    that runs on for :data:`LATE` seconds after the first is ended.

    Raises:
        CannotTry: a rank other than the first failed, died, or had to be ended; says which, and how.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    environment = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // processes)), WAITS: f"{patience:g}"}
    environment |= dict.fromkeys(("ACCELERATE_USE_CPU", accelerates_variable("ACCELERATE_USE_CPU")), "true")
    with _ranks_folder(environment | {"CUDA_VISIBLE_DEVICES": ""}) as folder:
        try:
            with _late_ended() as late:
                _launched(sys.executable, tuple(command), processes, folder)
        except ChildFailedError as error:
            if late:
                raise CannotTry(
                    f"rank {late[0]} of {processes} did not end with the first rank, so it was ended"
                ) from None
            status = error.failures[0].exitcode if 0 in error.failures else 0
            rank, failure = error.get_first_failure()
            if status > 0 and rank == 0:
                return int(status)
            stderr = "\n".join(_last_lines(path) for path in sorted(folder.rglob(f"{rank}/stderr.log")))
            how = failure.signal_name() if failure.exitcode < 0 else f"exit status {failure.exitcode}"
            ended = f"rank {rank} of {processes} ended with {how}; all ranks were ended\n{stderr}"
            # A first rank that a signal ended says nothing: the launcher kills one that does not end in time.
            if status <= 0 or status != failure.exitcode:
                raise CannotTry(ended) from None
            # The first rank crashed too, and has said how: perhaps only that it lost this one.
            sys.stderr.write(f"harness: {ended}\n")
            return int(status)
    return 0


@contextmanager
def _late_ended() -> Iterator[list[int]]:
    """Ends ranks that this process started and that run on long after the first one; their numbers."""
    over, late = threading.Event(), list[int]()

    def look() -> None:
        first_seen, ended = False, 0.0
        while not over.wait(POLL_SECONDS):
            running = _running_ranks()
            first_seen |= 0 in running
            if not first_seen or 0 in running:
                continue
            ended = ended or time.monotonic()
            if time.monotonic() - ended > LATE:
                for rank, process in running.items():
                    late.append(rank)
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                return

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield late
    finally:
        over.set()
        looking.join()


def _running_ranks() -> dict[int, int]:
    """The children of this process that are ranks, from number to process; none where there is no /proc."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, StopIteration):
            state, parent = (path / "stat").read_text().rpartition(") ")[2].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                variables = (path / "environ").read_bytes().split(b"\0")
                rank = next(each for each in variables if each.startswith(b"RANK=")).removeprefix(b"RANK=")
                found[int(rank)] = int(path.name)
    return found


def _last_lines(path: Path) -> str:
    return "\n".join(f"    {line}" for line in path.read_text(errors="replace").splitlines()[-LAST_LINES:])


@contextmanager
def _ranks_folder(environment: dict[str, str]) -> Iterator[Path]:
    """Where ranks leave what they have to say; it goes, as they do, whatever becomes of this process."""
    with (
        tempfile.TemporaryDirectory(prefix="harness-ranks-") as folder,
        afterwards(Path(folder)),
        with_environment(environment),
        _held_back(signal.SIGINT),
    ):
        yield Path(folder)


def _launched(
    entrypoint: Callable[..., Any] | str, arguments: tuple[Any, ...], processes: int, folder: Path
) -> dict[int, Any]:
    """What the ranks returned, as torch's elastic launcher starts them on this machine."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=folder.name,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        # The first rank speaks for all of them.
        logs_specs=DefaultLogsSpecs(str(folder), redirects=dict.fromkeys(range(1, processes), Std.ALL)),
    )
    disabled = logging.root.manager.disable
    try:
        logging.disable()  # the launcher's own account of a failure: forty lines of its stack
        found: dict[int, Any] = elastic_launch(config, entrypoint)(*arguments)
    except SignalException as error:
        raise KeyboardInterrupt from error
    finally:
        logging.disable(disabled)
    return found


def _rank(function: Callable[[], Result], folder: str, patience: float) -> Result:
    _end_with_the_parent()
    last_seen = Path(folder, f"{LAST_SEEN}{os.environ['RANK']}")
    with (
        interrupted_once(interrupting()) as interrupted,
        last_seen.open("w") as file,
        watched(patience, file),
        process_group(patience),
    ):
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # what was held back comes now
            result = function()
            if interrupted:
                raise KeyboardInterrupt  # or the launcher would wait for it
            return result
        except Exception as error:
            says = str(error) if isinstance(error, CannotTry) else f"rank {os.environ['RANK']}: {_format_error(error)}"
            failed = last_seen.with_name(f"{FAILED}{os.environ['RANK']}")
            written = failed.with_name(f".{failed.name}")  # the launcher may end this rank while it writes
            written.write_text(json.dumps({"at": time.time(), "says": says}))
            written.replace(failed)
            # Time for the launcher to see a rank that died before this one, and is perhaps why it failed.
            time.sleep(SETTLE)
            raise


@contextmanager
def _held_back(number: signal.Signals) -> Iterator[None]:
    """Processes that are started inside get the signal when they let it through, and not while they import; this one
    gets it as before, in a thread that does not hold it back."""
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        over.set()


def _end_with_the_parent() -> None:
    """End this process at once when the process that started it is killed."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def _format_error(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"


@contextmanager
def with_environment(values: dict[str, str]) -> Iterator[None]:
    """These environment variables inside, and for processes started there, where they are not set already."""
    new = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def _what_happened(error: ChildFailedError, folder: Path, patience: float) -> str:
    """One sentence on why the ranks ended, from what each left behind."""
    failed = {int(path.name.removeprefix(FAILED)): json.loads(path.read_text()) for path in folder.glob(f"{FAILED}*")}
    dumps = {int(path.name.removeprefix(LAST_SEEN)): path.read_text() for path in folder.glob(f"{LAST_SEEN}*")}
    at = {rank: f"rank {rank} at {_place(dump)}" for rank, dump in sorted(dumps.items()) if dump}
    hung = [rank for rank in at if dumps[rank].startswith("Timeout")]
    rank, failure = error.get_first_failure()
    if hung:
        # A rank that was stopped from outside, or hangs below Python, cannot even say where: the others waited for it.
        without_a_trace = [f"rank {rank} without a trace" for rank in dumps if rank not in at and rank not in failed]
        others = [at[rank] for rank in at if rank not in hung and rank not in failed]
        accused, waited = without_a_trace or [at[rank] for rank in hung], [at[rank] for rank in hung] + others
        waited = [each for each in waited if each not in accused]
        return f"hung for {patience:g} s: {', '.join(accused)}; all ranks were ended" + (
            f" ({', '.join(waited)})" if waited else ""
        )
    if failure.exitcode < 0:
        return f"{at.get(rank, f'rank {rank}')} died of {failure.signal_name()}; all ranks were ended"
    if rank in failed:
        says: str = min(failed.values(), key=lambda each: each["at"])["says"]
        return says
    return f"rank {rank} ended with exit status {failure.exitcode} and no error; all ranks were ended"


def _place(dump: str) -> str:
    """FILE:LINE and function of the innermost frame of what faulthandler wrote."""
    threads = re.split(r"\n\n(?=Thread|Current thread)", dump)
    main = threads[-1]  # the main thread comes last
    found = re.search(r'File "(.+)", line (\d+) in (\S+)', main)
    return f"{found[1]}:{found[2]} in {found[3]}" if found else "an unknown place"
