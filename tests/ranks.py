"""What ranks do in tests of several processes; in a module of their own, which the processes import."""

from __future__ import annotations

import faulthandler
import os
import signal
import time

from harness.errors import CannotTry
from harness.launch import of_all_ranks

FAILING = "1"


def numbers() -> list[int]:
    return of_all_ranks(int(os.environ["RANK"]) * 10)


def one_raises() -> list[int]:
    if os.environ["RANK"] == FAILING:
        raise ValueError("no such label")
    return of_all_ranks(0)


def one_cannot_try() -> list[int]:
    if os.environ["RANK"] == FAILING:
        raise CannotTry("data folder nowhere not found")
    return of_all_ranks(0)


def one_is_killed() -> list[int]:
    if os.environ["RANK"] == FAILING:
        os.kill(os.getpid(), signal.SIGKILL)
    return of_all_ranks(0)


def one_hangs_below_python() -> list[int]:
    """Where it cannot say where it is."""
    if os.environ["RANK"] == FAILING:
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGTERM)
        time.sleep(600)
    return of_all_ranks(0)


def one_exits() -> list[int]:
    if os.environ["RANK"] == FAILING:
        os._exit(3)
    return of_all_ranks(0)


def one_hangs() -> list[int]:
    if os.environ["RANK"] == FAILING:
        time.sleep(600)
    return of_all_ranks(0)
