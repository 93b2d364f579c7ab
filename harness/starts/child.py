"""One start of a script, in a process of its own: ``python -m harness.starts.child FILE`` with its orders in FILE."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

from harness.starts import again
from harness.starts.isolated import VARIABLE, directory_at, joined
from harness.starts.journal import Writer
from harness.starts.operations import Operations
from harness.starts.orders import KillPoint, Orders
from harness.starts.recorder import Recorder, Recording
from harness.starts.saves import Files
from harness.watch import running
from harness.watch.bus import OutcomeListener
from harness.watch.instrument import instrumented
from harness.watch.instrument.patches import Patches
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.running import as_main, readable_script, room_on_the_stack, run_as_main
from harness.watch.session import Session
from harness.watch.shortening import TrainingShortened

PAUSE = 0.5
"""Seconds after which a rank looks again whether its launcher is there."""


Others = Callable[[Recording], Sequence[Callable[[Monitor], OutcomeListener]]]
"""What makes further listeners, beside the recorder."""


def main(file: str) -> int:
    orders = Orders.read(Path(file))
    orders.pid_file(_rank()).write_text(str(os.getpid()))
    if "TORCHELASTIC_RUN_ID" in os.environ:
        _end_with(os.getppid())
    module, _, name = orders.task.partition(":")
    again.runs(orders.script)
    running.begins[:] = [again.sees_variables]
    with joined():
        status: int = getattr(importlib.import_module(module), name)(orders)
    return status


def _rank() -> int:
    return int(os.environ.get("RANK", "0"))


def _restarts() -> int:
    """How often torchrun has started all ranks again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def record(orders: Orders, others: Others = lambda recording: ()) -> int:
    """Run the script and write its journal; ``others`` makes further listeners."""
    rank = _rank()
    path = None if orders.module else readable_script(orders.script)
    with orders.journal(rank, _restarts()).open("a", encoding="utf-8") as journal:
        return _run(orders, path, journal, rank, others)


def _run(orders: Orders, path: Path | None, journal: TextIO, rank: int, others: Others) -> int:
    def kill() -> None:
        recording.writer.write(None)
        if orders.grace is None:
            _end_all(orders, rank)
        threading.Thread(target=late, daemon=True).start()
        os.kill(os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else os.getpid(), signal.SIGTERM)

    def late() -> NoReturn:
        time.sleep(orders.grace or 0.0)
        recording.writer.write(None)
        _end_all(orders, rank)

    def ended() -> NoReturn:
        recording.recorders[0].end(endless=True)
        _end_all(orders, rank)

    mine = rank == (orders.rank or 0) and _restarts() == 0
    place, most = orders.place if mine else KillPoint(), orders.most_updates if rank == 0 else None
    recording = Recording(Writer(journal), place, most, kill, ended, orders.keep is not None, orders.tells_held_out)

    def recorder(monitor: Monitor) -> Recorder:
        return Recorder(monitor, recording)

    locator = Locator(path)
    shortening = TrainingShortened() if orders.shortened else None
    session = Session(Options((recorder, *others(recording)), shortening=shortening), locator)
    main_recorder = recording.recorders[0]

    def finish(crashed: str | None, where: str | None = None) -> None:
        failed = session.broken or next(iter(session.crashed.values()), None)
        if len([each for each in recording.recorders if each.trained]) > 1:
            failed = failed or "the script trains in several threads"
        main_recorder.end(crashed=crashed, where=where, failed=failed)

    def left(status: int) -> int:
        finish(f"{orders.script} ended itself with os._exit({status})" if status else None)
        return status

    session.leaving = left
    process, patches = os.getpid(), Patches(session.fails)
    Files(recording, locator, Path.cwd()).install(patches)
    if orders.operations:
        mirror = directory_at(Path(os.environ[VARIABLE])).mirror
        Operations(recording, locator, mirror, orders.watched).install(patches)
    try:
        with as_main(orders.script, orders.arguments, path), room_on_the_stack(), instrumented(session):
            end = run_as_main(orders.script, path, locator)
    finally:
        patches.undo()
    if os.getpid() != process:
        sys.exit(end.code)
    finish(end.crashed, end.where)
    if end.crashed is not None:
        print(end.crashed, file=sys.stderr)
    return 0 if end.crashed is None else 1


def _end_with(launcher: int) -> None:
    """End this process where its launcher is killed, which would leave it behind."""

    def wait() -> None:
        while os.getppid() == launcher:
            time.sleep(PAUSE)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def _end_all(orders: Orders, rank: int) -> NoReturn:
    """Kill the launcher, the other ranks and this process, as a machine that goes down would; or this one alone."""
    if orders.rank is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        os.kill(os.getppid(), signal.SIGKILL)
    for other in orders.pids():
        if other != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit  # not reached


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
