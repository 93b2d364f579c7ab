"""The starts of one script: as it is, and once for each setting with another value, until something differs."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Literal

from harness.files import texts_below
from harness.findings import few
from harness.starts.journal import Journal
from harness.starts.warm import Warm, warm
from harness.starts.workdir import (
    LEAST_PATIENCE,
    PATIENCE,
    Command,
    Scratch,
    Start,
    Workdir,
    at_once,
    must_train,
)
from harness.vary.run import AT_ONCE, IDLE, LAUNCHED, ended
from harness.vary.settings.child import ABOUT, ARRIVED, DIFFERS, LOSS_ALONE, TASK
from harness.vary.settings.configured import written
from harness.vary.settings.differ import After, Differs, after, beyond_training, noise_of, of_updates
from harness.vary.settings.find import Setting
from harness.vary.settings.purpose import purpose
from harness.vary.settings.reads import reads_of, stores_of
from harness.vary.settings.turn import extremes, others
from harness.watch.locate import reads as words_read

Effect = Literal["training", "random draws", "evaluation", "output", "nothing", "not in play", "not turned"]

EFFECTS: dict[Effect, str] = {
    "training": "changes the training",
    "random draws": "changes which random numbers are drawn, and perhaps nothing else of the training",
    "evaluation": "changes only what is evaluated",
    "output": "changes only what is printed or saved",
    "nothing": "changes nothing",
    "not in play": "does not come into play at its value",
    "not turned": "not turned",
}


SILENT: tuple[Effect, ...] = ("nothing", "output")
"""Effects from which it does not follow that a setting is used for the training or the score."""

PROBES: dict[type, Any] = {bool: 7919, int: 7919, float: 7919.25, str: "no value of anybody's"}
"""Kinds of defaults to values that no call gives by itself; a start with one shows whether it arrives."""

SEEDING = ("seed", "manual_seed", "manual_seed_all", "set_seed", "seed_everything")
"""Calls that seed a generator."""

DEAD, STARTS_OF_A_DEAD_ONE = (0.05, 0.6), 6
"""Shares of settings that do nothing, in scripts that were measured, and about how often each of them is started."""

MOST_TOGETHER = 3
"""Settings that did not come into play beside which those without effect are turned once more."""


@dataclass(frozen=True)
class Turned:
    """One setting, and what followed when it was turned."""

    name: str
    shown: str
    where: str
    value: Any
    tried: list[Any]
    effect: Effect
    part: str | None = None
    """What differs first."""
    update: int | None = None
    what: str = ""
    """How it differs, or why it was not turned."""
    reached: Any = None
    """A value at which it does change the training, of one that does not come into play at its own."""
    seconds: float = 0.0


@dataclass(frozen=True)
class _Start:
    """One start, and what came of it."""

    start: Start
    differs: Differs | None
    after: After
    loss_alone: Differs | None = None
    kept: str = ""
    """Its journal, of one that others are compared with."""
    arrived: bool = False
    """Whether a function got its default, of a start that was made to see it."""

    @property
    def journal(self) -> Journal:
        return self.start.journals[0]

    @property
    def crashed(self) -> str | None:
        """The last line of what ended it."""
        return ended(self.start, self.journal) if self.differs is None else None


class Starts:
    """The starts of one script."""

    def __init__(self, given: Scratch, command: Command, *, shortened: bool, stack: ExitStack) -> None:
        self._given, self._command, self._shortened, self._stack = given, command, shortened, stack
        self._numbers = count(1)
        self._patience: float | None = None
        self._warm: Warm | None = None
        self._noise: dict[str, list[int]] = {}
        self._files: list[str] = []
        """What the script imports of the user's own."""
        self._libraries: list[str] = []
        self._executed: dict[str, set[int]] = {}
        """File to its lines that are executed."""
        self._at_once, self.made, self.updates, self.seconds = 1, 0, 0, 0.0
        self.sources: dict[str, bytes] = {}
        self.opened: set[str] = set()
        """Configuration files that the script reads."""
        self._one: _Start | None = None
        """The unchanged script; what is started before there is one is compared with nothing."""
        self._whole: _Start | None = None
        """The same with complete passes."""
        self._lock = threading.Lock()

    def unchanged(self, tell: Callable[[str], None]) -> None:
        """Start it as it is: once by itself, and twice as the others are started.

        Raises:
            CannotTry: it crashes, or nothing is trained.
        """
        first = self._start(self._command, {}, tells_imports=True)
        must_train(first.start, self._command, launched=LAUNCHED, idle=IDLE)
        self.seconds = first.start.seconds
        self._patience = max(LEAST_PATIENCE, PATIENCE * first.start.seconds)
        tell(f"unchanged, with a trace of its lines: {len(first.journal.updates)} updates, {first.start.seconds:.0f} s")
        environment = dict(self._command.environment)
        self._warm = self._stack.enter_context(
            warm(self._command.python, self._libraries, environment, self._given.left_behind)
        )
        one, again = (self._start(self._command, {}) for _ in range(2))
        for each in (one, again):
            must_train(each.start, self._command, launched=LAUNCHED, idle=IDLE)
        self._at_once = at_once(AT_ONCE)
        self._noise = noise_of(one.journal, again.journal)
        pairs = zip(first.journal.updates, one.journal.updates, strict=False)
        if any(of_updates(alone, copied, self._noise) is not None for alone, copied in pairs):
            tell("with its libraries imported before, it does something else: each start is a new process")
            self._warm = None
            one, again = first, self._start(self._command, {})
            self._noise = noise_of(one.journal, again.journal)
        self.seconds = again.start.seconds  # the first one has waited for the imports
        self._one, self._again, self.updates = one, again, len(one.journal.updates)
        tell(f"unchanged, as the others are started: {self.seconds:.1f} s")

    def files(self, script: Path | None) -> dict[str, bytes]:
        """The script, and what it imported of the user's own below the working directory, by their names from there."""
        here = os.path.realpath(os.getcwd()) + os.sep
        paths = [*([str(script)] if script is not None and script.suffix == ".py" else []), *self._files]
        for path in dict.fromkeys(map(os.path.realpath, paths)):
            name = path.removeprefix(here)
            if path.endswith(".py") and (name != path or (script is not None and path == os.path.realpath(script))):
                self.sources[name] = Path(path).read_bytes()
        return self.sources

    def not_below(self) -> list[str]:
        """What is imported and not looked at."""
        here = os.path.realpath(os.getcwd()) + os.sep
        others = [path for path in self._files if not os.path.realpath(path).startswith(here)]
        if not others:
            return []
        names = few([os.path.basename(path) for path in others], 3)
        return [f"not looked at, as they are not below the working directory: {names}; start it in a folder above them"]

    def seconds_for(self, number: int, dead: float) -> float:
        """About how long it takes to turn that many settings, a share of which does nothing; others end early."""
        return max(1.0, number * (0.4 + STARTS_OF_A_DEAD_ONE * dead) * self.seconds / self._at_once)

    def turned(self, settings: Sequence[Setting]) -> Iterator[Turned]:
        """What follows of each setting."""
        pool = ThreadPoolExecutor(self._at_once)
        try:
            yield from pool.map(self._turn, settings)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # starts that go on are ended with the scratch folder

    def _turn(self, setting: Setting) -> Turned:
        begun, tried, crashes = time.perf_counter(), list[Any](), list[str]()
        told = Turned(setting.name, setting.shown, setting.where, setting.value, tried, "nothing")
        for value in others(setting)[:2]:
            tried.append(value)
            other = self._with([(setting, value)])
            if other.crashed is not None:
                crashes.append(other.crashed)
                continue
            effect, differs = self._effect(other)
            of_training = purpose(setting.name)
            if effect in SILENT and (unused := self._not_executed(setting)) is not None:
                return replace(told, effect="not in play", what=unused, seconds=_since(begun))
            if effect == "random draws" and of_training:
                effect = "training"
            if effect in SILENT and of_training and self._shortened:
                effect, differs = self._of_whole_passes(setting, value, (effect, differs))
            if effect in SILENT and of_training and (why := self._not_in_play(setting)) is not None:
                return replace(told, effect="not in play", what=why[0], reached=why[1], seconds=_since(begun))
            told = replace(told, effect=effect, seconds=_since(begun))
            return (
                told if differs is None else replace(told, part=differs.part, update=differs.update, what=differs.what)
            )
        what = f"it cannot be turned: {crashes[-1]}" if crashes else ""
        return replace(told, effect="not turned", what=what, seconds=_since(begun))

    def _not_in_play(self, setting: Setting) -> tuple[str, Any] | None:
        """Why a setting without effect may have one at another time, and the value that shows it."""
        if self._is_always_given(setting):
            return "each call gives another value", None
        stores = stores_of(setting, self.sources) if setting.kind in ("argument", "entry") else []
        if (store := next(filter(self.is_executed, stores), None)) is not None:
            return f"another value is assigned at {store}", None
        for most in extremes(setting):
            reached = self._with([(setting, most)])
            if reached.crashed is None and self._effect(reached)[0] in ("training", "random draws"):
                return f"at {setting.value!r} it changes nothing, at {_rounded(most)} it does", most
        return None

    def _not_executed(self, setting: Setting) -> str | None:
        """Why a setting cannot have an effect in this run; None where it may."""
        lines = self._executed.get(setting.file)
        if lines and setting.lines != (0, 0) and not any(map(setting.is_within, lines)):
            owner = setting.of.partition("#")[0]
            is_default = setting.kind == "default" and "#" in setting.of
            return f"{owner} is not called in this run" if is_default else "its line is not executed in this run"
        reads = [line for line in reads_of(setting, self.sources) if line != setting.where]
        if reads and not any(self.is_executed(line) for line in reads):
            return f"{reads[0]}, which reads it, is not executed in this run"
        if setting.kind == "option" and not reads_of(setting, self.sources, uses_alone=True):
            for file, text in self._project:
                if file not in self.sources and words_read(text, setting.own_name):
                    return f"{file}, which reads it, is not imported in this run"
        return None

    @cached_property
    def _project(self) -> list[tuple[str, str]]:
        return texts_below(Path.cwd())

    def is_executed(self, place: str) -> bool:
        """Whether a line of the user's, as FILE:LINE, is; what is not known counts as executed."""
        file, _, line = place.rpartition(":")
        return file not in self._executed or int(line) in self._executed[file]

    def _is_always_given(self, setting: Setting) -> bool:
        """Whether no call of a function, or of a dataclass, gets its default: a value of its own never arrives."""
        probe = next((PROBES[kind] for kind in PROBES if isinstance(setting.value, kind)), None)
        if not setting.is_parameter or setting.argument is not None or probe is None:
            return False
        start = self._with([(setting, probe)], compared=False, default=(setting, probe))
        return start.crashed is None and not start.arrived

    def together(self, found: Sequence[tuple[Setting, Turned]]) -> Iterator[Turned]:
        """The settings, of which those without effect are turned once more beside what did not come into play."""
        silent = [(setting, turned) for setting, turned in found if turned.effect in SILENT and purpose(setting.name)]
        alive = {setting.own_name: setting for setting, turned in found if turned.effect == "training"}
        whys: dict[int, str] = {}
        for setting, turned in silent:
            other = alive.get(setting.own_name)
            given = setting.kind in ("entry", "default", "option") and setting.argument is None
            if given and other is not None and other.kind in ("in a file", "option"):
                whys[id(turned)] = f"it is not in force: another value is given at {other.where}"
            elif setting.own_name in alive and setting.kind == "argument" and setting.of in SEEDING:
                whys[id(turned)] = f"what this run draws from is seeded at {alive[setting.own_name].where}"
            elif setting.given_at is not None:
                whys[id(turned)] = f"where it matters another value is given: {setting.given_at}"
        shown = [(setting, turned.reached) for setting, turned in found if turned.reached is not None][:MOST_TOGETHER]
        for setting, value in shown if silent else ():
            base = self._with([(setting, value)], compared=False)
            for dead, turned in silent if base.crashed is None else ():
                if id(turned) not in whys:
                    both = self._with([(setting, value), (dead, turned.tried[-1])], expected=base)
                    if both.crashed is None and self._effect(both, base)[0] in ("training", "random draws"):
                        whys[id(turned)] = f"it changes the training where {setting.name} is {value!r}"
        for _, turned in found:
            why = whys.get(id(turned))
            yield turned if why is None else replace(turned, effect="not in play", part=None, what=why)

    def _effect(self, other: _Start, expected: _Start | None = None) -> tuple[Effect, Differs | None]:
        assert self._one is not None
        differs = other.differs
        number, made = len((expected or self._one).journal.updates), len(other.journal.updates)
        if differs is None and made < number:
            differs = Differs("number of updates", made, f"{made} for {number}")
        if differs is not None:
            return ("random draws" if differs.by_draws else "training"), differs
        if other.loss_alone is not None:
            return "output", other.loss_alone
        beyond = beyond_training(self._one.after, self._again.after, other.after) if expected is None else None
        if beyond is None:
            return "nothing", None
        return ("evaluation" if beyond.part == "evaluation" else "output"), beyond

    def _of_whole_passes(
        self, setting: Setting, value: Any, known: tuple[Effect, Differs | None]
    ) -> tuple[Effect, Differs | None]:
        """Its effect where no pass is shortened, if any was."""
        with self._lock:
            self._whole = self._whole or self._start(self._command, {}, compared=False, shortened=False)
        if len(self._whole.journal.updates) <= self.updates:
            return known
        other = self._with([(setting, value)], expected=self._whole, shortened=False)
        effect = self._effect(other, self._whole)
        return effect if effect[0] != "nothing" else known

    def _with(self, values: Sequence[tuple[Setting, Any]], **how: Any) -> _Start:
        """A start with other values of some settings."""
        words: list[str | None] = list(self._command.arguments)
        edits: dict[str, list[tuple[Setting, Any]]] = {}
        for setting, value in values:
            if setting.flag and setting.argument is None:
                words.append(setting.flag)
            elif setting.argument is not None:
                name, equals, _ = self._command.arguments[setting.argument].partition("=")
                other = f"{name}={value}" if equals else str(value)
                words[setting.argument] = None if setting.flag else other
            else:
                edits.setdefault(setting.file, []).append((setting, value))
        edited = {}
        for file, several in edits.items():
            data = self.sources.get(file) or Path(file).read_bytes()
            for setting, value in sorted(several, key=lambda each: -each[0].start):
                data = data[: setting.start] + written(setting, value) + data[setting.end :]
            edited[file] = data
        arguments = tuple(word for word in words if word is not None)
        return self._start(replace(self._command, arguments=arguments), edited, **how)

    def _start(
        self,
        command: Command,
        edited: Mapping[str, bytes],
        *,
        expected: _Start | None = None,
        compared: bool = True,
        shortened: bool | None = None,
        tells_imports: bool = False,
        default: tuple[Setting, Any] | None = None,
    ) -> _Start:
        """A start, which ends at the first update that is not that of ``expected``, or of the unchanged script."""
        workdir, number = self._given.workdir(next(self._numbers), command), next(self._numbers)
        self.made += 1
        try:
            for name, data in edited.items():
                workdir.put(name, data)
            beside = (expected or self._one) if compared else None
            given: dict[str, Any] = {"tells imports": tells_imports}
            if default is not None:
                setting, value = default
                of, place, _ = setting.of.partition("#")
                lines = setting.lines if place else (0, 0)  # the __init__ of a dataclass lies in no file
                given["default"] = {
                    "file": setting.file,
                    "lines": lines,
                    "of": of,
                    "name": setting.name,
                    "value": value,
                }
            if beside is not None:
                given |= {"expected": beside.kept, "noise": self._noise}
            orders = workdir.orders(
                task=TASK, vary=given, shortened=self._shortened if shortened is None else shortened
            )
            printed = ""
            if self._warm is None:
                start = workdir.start(orders, self._patience)
            else:
                start, printed = workdir.start_warm(self._warm, number, orders, self._patience)
            folder = Path(orders.folder)
            if (folder / ABOUT).exists():
                self._learn(json.loads((folder / ABOUT).read_text(encoding="utf-8")), workdir)
            kept = ""
            if beside is None:
                kept = str(self._given.root / f"journal-{number}.jsonl")
                Path(kept).write_bytes(orders.journal(0).read_bytes())
            after_it = after(start.journals[0], printed)
            arrived = (folder / ARRIVED).exists()
            return _Start(start, _told(folder / DIFFERS), after_it, _told(folder / LOSS_ALONE), kept, arrived)
        finally:
            workdir.remove()

    def _learn(self, about: dict[str, Any], workdir: Workdir) -> None:
        """Keep which files and libraries the script imports, and which of its lines are executed."""
        self._files, self._libraries = [workdir.real(each) for each in about["users"]], about["libraries"]
        self.opened = {os.path.realpath(workdir.real(each)) for each in about["opened"]}
        here = os.path.realpath(os.getcwd()) + os.sep
        for file, lines in about["executed"].items():
            name = os.path.realpath(workdir.real(file)).removeprefix(here)
            self._executed.setdefault(name, set()).update(lines)


def _rounded(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _told(file: Path) -> Differs | None:
    return Differs(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


def _since(begun: float) -> float:
    return time.perf_counter() - begun
