"""Leaves things behind in its process, and says what is there: a program of :class:`tests.server.Server`."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str], prog_name: str) -> None:
    """Write what is found to the first file, then do what the others name."""
    file, *things = arguments
    Path(file).write_text(json.dumps(found()))
    for thing in things:
        globals()[thing]()


def found() -> dict[str, object]:
    """What scripts may change of a process, and this process by its number."""
    import torch

    about: dict[str, object] = {"process": os.getpid(), "threads": threading.active_count()}
    about["draws"] = [random.random(), torch.rand(()).item()]
    about["torch"] = [
        str(torch.get_default_dtype()),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
    ]
    about["python"] = [sys.argv[1:], len(warnings.filters), os.environ.get("LEFT"), "beside" in sys.modules]
    return about


def changes() -> None:
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    warnings.simplefilter("error", UnicodeWarning)
    os.environ["LEFT"] = "here"
    sys.argv[1:] = ["another"]
    Path("beside.py").write_text("")
    sys.path.insert(0, os.getcwd())
    __import__("beside")
    os.chdir("/")


def thread() -> None:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def ends() -> None:
    os._exit(7)


def fails() -> None:
    raise ValueError("no such row")
