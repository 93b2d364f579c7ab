"""One start with a setting turned: it is ended at the first update that is not the unchanged script's."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

from harness.starts import child
from harness.starts.journal import Journal, Update, Writer
from harness.starts.orders import Orders
from harness.starts.recorder import Recording
from harness.starts.warm import is_library
from harness.vary.child import begin_alike
from harness.vary.settings.configured import SUFFIXES
from harness.vary.settings.differ import Differs, loss_alone, of_updates
from harness.watch.locate import Locator

TASK = "harness.vary.settings.child:record"
"""What starts a script of which a setting is turned."""

ABOUT, DIFFERS, LOSS_ALONE = "imported.json", "differs.json", "loss.json"

ARRIVED = "arrived"
"""File that is written where a function is called without the argument whose default is looked at."""

OF_WORKERS = "lines-of-workers.txt"


class Comparing(Writer):
    """Writes a journal, and ends the script where an update is another than expected."""

    def __init__(self, writer: Writer, folder: Path, expected: Sequence[Update], noise: Mapping[str, Sequence[int]]):
        super().__init__(writer._file)
        self._folder, self._expected, self._noise = folder, expected, noise
        self._alone: Differs | None = None

    def write(self, event: Any) -> None:
        super().write(event)
        if not isinstance(event, Update):
            return
        place = event.at - 1
        if place >= len(self._expected):
            self._end(Differs("number of updates", event.at, f"more than {len(self._expected)}", where=event.where))
        found = of_updates(self._expected[place], event, self._noise)
        if found is not None:
            self._end(found)
        if self._alone is None:
            self._alone = loss_alone(self._expected[place], event, self._noise)
            if self._alone is not None:
                (self._folder / LOSS_ALONE).write_text(json.dumps(asdict(self._alone)), encoding="utf-8")

    def _end(self, found: Differs) -> NoReturn:
        (self._folder / DIFFERS).write_text(json.dumps(asdict(found)), encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit  # not reached


def record(orders: Orders) -> int:
    """Run a script under the recorder; ``orders.vary`` has what it is compared with, and says what is written down.

    What the script does not seed itself begins alike in each start.
    """
    given, folder = orders.vary or {}, Path(orders.folder)
    begin_alike()

    def listeners(recording: Recording) -> list[Any]:
        if (kept := given.get("expected")) is not None:
            expected = Journal.read(Path(kept)).updates
            recording.writer = Comparing(recording.writer, folder, expected, given.get("noise", {}))
        return []

    lines = Lines(folder) if given.get("tells imports") else None
    if (default := given.get("default")) is not None:
        ends = _ends_on_arrival(default, folder / ARRIVED)
        threading.setprofile(ends)
        sys.setprofile(ends)
    try:
        with nullcontext() if lines is None else lines.traced():
            return child.record(orders, listeners)
    finally:
        if default is not None:
            sys.setprofile(None)
        if lines is not None:
            _tell_imports(folder, lines)


def _ends_on_arrival(default: Mapping[str, Any], file: Path) -> Callable[[FrameType, str, Any], None]:
    """What ends the script where a function, or a dataclass, is called with the value that only its default has."""
    (first, last), value = default["lines"], default["value"]

    def called(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or default["name"] not in code.co_varnames:
            return
        # Its own lines, because a signature may have several, and decorators before them.
        own = os.path.basename(code.co_filename) == os.path.basename(default["file"])
        own = own and any(line is not None and first <= line <= last for _, _, line in code.co_lines())
        kinds = type(frame.f_locals.get("self")).__mro__ if code.co_name == "__init__" else ()
        made = default["of"] in [kind.__name__ for kind in kinds]
        given = frame.f_locals.get(default["name"])
        if (own or made) and type(given) is type(value) and given == value:
            file.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return called


class Lines:
    """The lines of the user's files that are executed, in this process and in those that it forks."""

    def __init__(self, folder: Path) -> None:
        self.locator = Locator()
        self.executed: dict[str, set[int]] = {}
        self.opened: set[str] = set()
        """Configuration files that are opened."""
        self._own, self._of_workers = os.getpid(), folder / OF_WORKERS
        sys.addaudithook(self._audited)

    @contextmanager
    def traced(self) -> Iterator[None]:
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and arguments[0].endswith(SUFFIXES):
            self.opened.add(os.path.abspath(arguments[0]))

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not self.locator.is_users_file(name):
            return None
        lines = self.executed.setdefault(name, set())

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            number = frame.f_lineno
            if number not in lines:
                lines.add(number)
                if os.getpid() != self._own:  # a worker, whose own copy of the set is lost
                    with self._of_workers.open("a", encoding="utf-8") as file:
                        file.write(f"{name}:{number}\n")
            return line

        return line(frame, event, argument)

    def all_executed(self) -> dict[str, list[int]]:
        """Files to the numbers of their lines."""
        if self._of_workers.exists():
            for word in self._of_workers.read_text(encoding="utf-8").splitlines():
                name, _, number = word.rpartition(":")
                self.executed.setdefault(name, set()).add(int(number))
        return {name: sorted(numbers) for name, numbers in self.executed.items()}


def _tell_imports(folder: Path, lines: Lines) -> None:
    """Write down which libraries the script has imported, in their order, which files of the user's, and which of their
    lines it has executed."""
    locator = lines.locator
    users, libraries = [], []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
        if name.startswith("harness") or name in ("__main__", "__mp_main__"):
            continue
        if isinstance(file, str) and os.path.isfile(file) and locator.is_users_file(file):
            users.append(os.path.abspath(file))
        elif is_library(name):
            libraries.append(name)
    told = {"users": users, "libraries": libraries, "executed": lines.all_executed(), "opened": sorted(lines.opened)}
    (folder / ABOUT).write_text(json.dumps(told), encoding="utf-8")
