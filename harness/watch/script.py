"""Run a user's script under watch, as ``python SCRIPT`` would."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness import launch
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import Finding

if TYPE_CHECKING:
    from harness.watch.observer import Observer

PATIENCE = 60.0
"""Seconds that the first rank waits for what the others found."""


@dataclass
class Watched:
    """What a script did, and what was found in it."""

    script: str
    updates: int = 0
    findings: list[Finding] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Checks that found something and were not wanted."""
    notes: list[str] = field(default_factory=list)
    """What could not be looked at, and why."""
    shortened: bool = False
    """Whether a pass over a DataLoader was."""
    crashed: str | None = None
    """The script's own traceback, or how it ended itself."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Until the first batch, and in all."""

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """In the form of ``--json``."""
        findings = [
            {name: value for name, value in finding.as_dict().items() if value is not None or name != "update"}
            for finding in self.findings
        ]
        return {"schema": 1} | vars(self) | {"findings": findings}


def check_script(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    updates: int | None = None,
    full: bool = False,
    ignore: Collection[str] = (),
) -> Watched:
    """Run ``script`` with ``arguments``, watched; with ``module`` it is a module's name, as with ``python -m``.

    Unless ``full``, each long pass over a DataLoader is shortened, while its ``len()`` stays what it is.

    Raises:
        CannotTry: there is no such script, it is not Python, or it makes no update in this process.
    """
    begun = time.perf_counter()
    path = None if module else _readable(script)

    from harness.watch import wanted
    from harness.watch.hooks import looking
    from harness.watch.invariants import INVARIANTS, known
    from harness.watch.observer import Enough, Observer

    known(ignore)
    observer = Observer(INVARIANTS, every=10 if full else 1, updates=updates, script=path, shortened=not full)
    watched = Watched(script)
    with _as_main(script, arguments, path), looking(observer):
        try:
            if path is None:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(str(path), run_name="__main__")
        except Enough:
            pass
        except SystemExit as ended:
            if ended.code not in (None, 0):
                watched.crashed = f"{script} ended itself with sys.exit({ended.code!r})"
        except KeyboardInterrupt:
            watched.crashed = f"{script} was interrupted"
        except BaseException as error:
            if module and isinstance(error, ImportError) and not _own_frames(error.__traceback__):
                raise CannotTry(f"there is no module {script} to run: {error}") from error
            watched.crashed = _traceback(error)
    observer.complete = observer.complete and watched.crashed is None
    observer.ends()
    _gather(observer)
    watched.updates = observer.updates_made
    watched.notes = observer.notes
    watched.shortened = observer.passes_shortened
    watched.findings = wanted(observer, ignore)
    watched.ignored = sorted(set(observer.findings) & set(ignore))
    end = time.perf_counter()
    first = observer.first_batch or end
    watched.seconds = {"before the first batch": first - begun, "in all": end - begun}
    if not observer.made and watched.crashed is None and not watched.findings:
        raise CannotTry(
            f"{script} made no optimizer step in this process, so there is nothing to judge; if it trains in a process "
            "of its own, check the script that it starts there"
        )
    return watched


def _gather(observer: Observer) -> None:
    """On the first of several ranks: what the others found, and what only shows when ranks are compared."""
    from harness.watch.invariants.ranks import Ranks

    ranks = launch.world_size() or 1
    if ranks == 1:
        return
    own = next(each for each in observer.invariants if isinstance(each, Ranks))
    # Ranks of one launcher on one machine have one parent.
    folder = Path(tempfile.gettempdir()) / f"harness-{os.getppid()}-{os.environ.get('MASTER_PORT', '')}"
    folder.mkdir(exist_ok=True)
    rank = int(os.environ.get("RANK", "0"))
    told = {
        "findings": [finding.as_dict() for finding in observer.findings.values()],
        "notes": observer.notes,
        "summary": own.summary,
    }
    write_atomically(folder / f"{rank}.json", json.dumps(told))
    if rank:
        return
    others: list[dict[str, Any]] = []
    for other in range(1, ranks):
        path = folder / f"{other}.json"
        until = time.monotonic() + PATIENCE
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
        if not path.exists():
            observer.note(f"rank {other} of {ranks} told nothing within {PATIENCE:.0f} s; it is left out")
            continue
        others.append(json.loads(path.read_text()))
        for each in others[-1]["findings"]:
            found = Finding(**each)
            if found.check not in observer.findings:
                observer.findings[found.check] = replace(found, observed=f"{found.observed} (rank {other})")
    shutil.rmtree(folder, ignore_errors=True)
    own.compare([own.summary, *(each["summary"] for each in others)])


def _readable(script: str) -> Path:
    path = Path(script)
    if path.is_dir():
        path = path / "__main__.py"
    if not path.is_file():
        raise CannotTry(f"there is no script {script}")
    try:
        compile(path.read_bytes(), script, "exec")
    except (SyntaxError, ValueError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise CannotTry(f"{script} is not Python{place}: {error.args[0]}") from error
    except OSError as error:
        raise CannotTry(f"{script} cannot be read: {error.strerror}") from error
    return path


@contextmanager
def _as_main(script: str, arguments: Sequence[str], path: Path | None) -> Iterator[None]:
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
    ours = str(Path(__file__).parent)
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
