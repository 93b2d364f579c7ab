"""``harness vary --settings``: the script as it is, and once more for each setting, until something differs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from harness import catalogue, launch
from harness.errors import CannotTry
from harness.findings import Finding, Report
from harness.findings import count as counted
from harness.starts.workdir import (
    Command,
    scratch,
)
from harness.vary.run import USUAL
from harness.vary.settings.configured import is_one, named_in, settings_in
from harness.vary.settings.find import Setting, settings_of
from harness.vary.settings.purpose import is_side, purpose
from harness.vary.settings.reads import reads_of, words_of
from harness.vary.settings.starts import DEAD, EFFECTS, SILENT, Starts, Turned
from harness.vary.settings.turn import others

WITHOUT_EFFECT, WITH_SIDE_EFFECT = "settings::without-effect", "settings::with-side-effect"


@dataclass
class SettingsReport(Report):
    """What each setting of a script changes."""

    kind: ClassVar[str] = "settings"
    script: str
    updates: int = 0
    shortened: bool = False
    settings: list[Turned] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    starts: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


def turn_settings(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    full: bool = False,
    select: Sequence[str] = (),
    hidden: tuple[str, ...] = (),
    tell: Callable[[str], None],
) -> SettingsReport:
    """Start a script as it is, and once for each of its settings with another value, and say what follows.

    Args:
        select: names of settings to turn alone; all without.
        tell: gets a line for each start.

    Raises:
        CannotTry: there is no such script, it crashes as it is, or makes no update; no setting has a selected name; or
            a launcher has started this process.
    """
    from harness.watch.running import readable_script

    if (launch.world_size() or 1) > 1:
        raise CannotTry("harness vary starts the script itself, in one process: call it without a launcher")
    path = None if module else readable_script(script)
    command = Command(script, tuple(arguments), module, hidden=hidden, environment=tuple(USUAL.items()))
    begun = time.perf_counter()
    with scratch("harness-vary-") as given, ExitStack() as stack:
        starts = Starts(given, command, shortened=not full, stack=stack)
        starts.unchanged(tell)
        settings, notes = _settings(starts.files(path), arguments, starts.opened, starts.is_executed)
        notes += starts.not_below()
        wanted = _selected(settings, select)
        report = SettingsReport(script, updates=starts.updates, shortened=not full, notes=notes)
        turnable = [each for each in wanted if others(each)]
        report.settings = [_not_turned(each) for each in wanted if not others(each)]
        few_dead, many_dead = (starts.seconds_for(len(turnable), share) for share in DEAD)
        many = counted(len(turnable), "setting")
        tell(f"{many} to turn: {few_dead:.0f} s, and up to {many_dead:.0f} s if many do nothing")
        found = list[tuple[Setting, Turned]]()
        try:
            for setting, turned in zip(turnable, starts.turned(turnable), strict=True):
                found.append((setting, turned))
                tell(f"{len(found)} of {len(turnable)}: {turned.shown}: {EFFECTS[turned.effect]}")
            found = [(setting, turned) for (setting, _), turned in zip(found, starts.together(found), strict=True)]
        except KeyboardInterrupt:
            report.interrupted = True
        report.settings += [turned for _, turned in found]
        report.starts = starts.made
        report.findings = list(_judged(found, starts.sources))
    order = {setting.where: place for place, setting in enumerate(wanted)}
    report.settings.sort(key=lambda each: ([*EFFECTS].index(each.effect), order.get(each.where, 0)))
    report.seconds = {"one start": starts.seconds, "in all": time.perf_counter() - begun}
    return report


def _settings(
    files: Mapping[str, bytes], arguments: Sequence[str], opened: set[str], is_executed: Callable[[str], bool]
) -> tuple[list[Setting], list[str]]:
    found = settings_of({name: data for name, data in files.items() if name.endswith(".py")}, arguments, is_executed)
    notes = [f"not read: {each}" for each in found.not_read]
    notes += [
        f"{each.shown} ({each.where}) is not in force: another value is given at {by}" for each, by in found.overridden
    ]
    texts = [data.decode("utf-8", "replace") for data in files.values()]
    for name in named_in(texts, arguments):
        if os.path.realpath(name) not in opened:
            continue
        found.settings += [each for each in settings_in(name, Path(name).read_bytes()) if is_one(each)]
    return found.settings, notes


def _selected(settings: Sequence[Setting], names: Sequence[str]) -> list[Setting]:
    if not names:
        return list(settings)
    found = [each for each in settings if each.name in names or each.own_name in names]
    missing = [name for name in names if not any(name in (each.name, each.own_name) for each in found)]
    if missing:
        known = ", ".join(dict.fromkeys(each.name for each in settings)) or "none"
        raise CannotTry(f"there is no setting {missing[0]} in force; the settings found are: {known}")
    return found


def _not_turned(setting: Setting) -> Turned:
    why = "no other value is known that would be valid here"
    return Turned(setting.name, setting.shown, setting.where, setting.value, [], "not turned", what=why)


def _is_a_guess(setting: Setting, turned: Turned, sources: Mapping[str, bytes]) -> bool:
    """Whether that nothing followed says little: the script may not know the word that was tried, or a number that a
    call was given is printed, and so it is used."""
    if isinstance(setting.value, str) and not setting.choices:
        return not words_of(sources).intersection(turned.tried)
    return setting.kind == "argument" and turned.part == "printed"


def _judged(found: Sequence[tuple[Setting, Turned]], sources: Mapping[str, bytes]) -> Iterator[Finding]:
    faults = catalogue.settings()
    for setting, result in found:
        what = purpose(result.name)
        tried = ", ".join(f"{value!r}" for value in result.tried)
        if what is not None and result.effect in SILENT and not _is_a_guess(setting, result, sources):
            same = "all updates and scores are the same, bit for bit"
            if result.effect == "output":
                same = f"all updates are the same, bit for bit; only what is {result.part} differs"
            observed = f"{result.name} = {result.value!r}: with {tried} {same}"
            reads = [line for line in reads_of(setting, sources) if line != result.where]
            if setting.kind == "argument":
                observed += f"; it is passed to {setting.of}"
            else:
                observed += f"; it is read at {', '.join(reads[:3])}" if reads else "; no line of yours reads it"
            yield faults[WITHOUT_EFFECT].finding(
                f"another training, as it is about {what}", observed, result.where, None
            )
        elif is_side(result.name) and result.effect == "training":
            differs = f"{result.part}, {result.what}"
            observed = f"{result.name} = {result.value!r}: with {tried} update {result.update} is another ({differs})"
            yield faults[WITH_SIDE_EFFECT].finding("the same training", observed, result.where, result.update)
