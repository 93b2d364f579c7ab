"""How a training compares with its baseline, as lines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from harness.baseline.rows import is_digest, of_what
from harness.baseline.settings_table import SETTINGS
from harness.baseline.training_file import NUMBERS
from harness.baseline.trainings import error_line, first_update
from harness.findings import few, shortened

if TYPE_CHECKING:
    from harness.baseline.trainings import Changed, TrainingVerdict

MOST_FACTS = 8
"""Facts of a section that are shown."""

WIDTH = 160
"""Characters of a value that are shown."""

ABSENT = "absent"
"""What is shown of a fact that one side lacks."""

OF_UPDATES = ("loss", "gradient_norm", "gradient_norm_before_clipping")
"""Kinds of numbers of which there is one for each update; of others there is one for each evaluation."""


def verdict_lines(verdict: TrainingVerdict) -> Iterator[str]:
    """The first section that differs, whole; of those behind it, which may follow from it, the first fact each; and
    the numbers, whatever differs."""
    for each in verdict.findings:
        yield f"{verdict.name}: error: {error_line(each)}"
    if not verdict.changed:
        if not verdict.findings:
            yield f"{verdict.name}: matches its baseline in {verdict.facts} facts; {verdict.lane}"
        yield from (f"  {note}" for note in _notes(verdict))
        return
    section, *behind = verdict.changed
    place = f" ({verdict.where[section]})" if section in verdict.where else ""
    yield f"{verdict.name}: {section} differ{'' if section in (NUMBERS, SETTINGS) else 's'} from the baseline{place}"
    yield from _block(verdict, section, MOST_FACTS)
    for other in (each for each in behind if each not in (NUMBERS, SETTINGS)):
        first, *others = fact_lines(verdict.changed[other], verdict.rows)
        more = f", and {len(others)} more" if others else ""
        yield f"  {other} differs too: {first}{more}"
    if SETTINGS in behind:
        yield "  settings differ too:"
        lines = fact_lines(verdict.changed[SETTINGS], verdict.rows)
        yield from _most((f"    {line}" for line in lines), MOST_FACTS, "    ")
    yield from (f"  {note}" for note in _notes(verdict))
    if section != NUMBERS:
        yield f"  numbers {'differ too' if NUMBERS in verdict.changed else _agree(verdict)}:"
        yield from _most((f"    {line}" for line in number_lines(verdict)), MOST_FACTS, "    ")
    yield f"  {verdict.lane}"
    yield f"  To accept this change: harness baseline accept {verdict.name} {section} --why TEXT"
    if behind:
        yield f"  To accept everything: harness baseline accept {verdict.name} all --why TEXT"


def accepted_lines(verdict: TrainingVerdict, sections: Sequence[str]) -> Iterator[str]:
    """All that differs in sections that are about to be accepted, and whether the numbers differ that are not."""
    yield from _notes(verdict)
    for section in sections:
        yield f"{section}:"
        yield from _block(verdict, section, None)
    if sections and NUMBERS not in sections and NUMBERS in verdict.changed:
        yield "numbers differ too and are not accepted:"
        yield from (f"  {line}" for line in number_lines(verdict))


def _notes(verdict: TrainingVerdict) -> Iterator[str]:
    """What differs and does not count."""
    yield from verdict.renamed
    if ignored := verdict.ignored:
        yield f"ignored, though {'it differs' if len(ignored) == 1 else 'they differ'}: {few(ignored, MOST_FACTS)}"


def _block(verdict: TrainingVerdict, section: str, most: int | None) -> Iterator[str]:
    if section == NUMBERS:
        yield from _most((f"  {line}" for line in number_lines(verdict)), most, "  ")
        return
    was, now = (text.split("\n") for text in verdict.says.get(section, ("", "")))
    for one, other in zip_longest(*_apart(was, now), fillvalue=""):
        yield f"  was  {one or ABSENT}"
        yield f"  now  {other or ABSENT}"
    yield from _most((f"  {line}" for line in fact_lines(verdict.changed.get(section, []), verdict.rows)), most, "  ")


def _apart(was: Sequence[str], now: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines of the page that are not the same before and after."""
    return [each for each in was if each and each not in now], [each for each in now if each and each not in was]


def _agree(verdict: TrainingVerdict) -> str:
    return "are unchanged" if verdict.numbers_compared else "were not compared"


def fact_lines(changed: Sequence[Changed], rows: Mapping[str, str]) -> Iterator[str]:
    """What was, and what is, fact by fact; what digests of rows say comes first, in words."""
    for of in dict.fromkeys(of_what(each.key) for each in changed if is_digest(each.key)):
        if of in rows:
            yield f"{of}: {rows[of]}"
    for change in changed:
        if not is_digest(change.key):
            yield f"{change.key}: {_values(change.was, change.now)}"


def number_lines(verdict: TrainingVerdict) -> Iterator[str]:
    """The first loss as it was and as it is, and where each number that differs begins to."""
    if verdict.first_loss is not None:
        yield f"first loss: {_values(*verdict.first_loss)}{_relative(*verdict.first_loss)}"
    yield from map(_parts, verdict.changed.get(NUMBERS, []))


def _most(lines: Iterable[str], most: int | None, indent: str) -> Iterator[str]:
    """The first lines, and how many more there are."""
    lines = list(lines)
    yield from lines[:most]
    if most is not None and len(lines) > most:
        yield f"{indent}and {len(lines) - most} more"


def _parts(changed: Changed) -> str:
    key, place = changed.key.removeprefix(f"{NUMBERS}."), first_update(changed)
    if place is None:
        return f"{key}: {_change(_amount(changed.was), _amount(changed.now))}"
    was, now = changed.was[place - 1], changed.now[place - 1]
    at = f"from {'update' if key.partition('.')[0] in OF_UPDATES else 'value'} {place} on"
    if key == "loss" and place == len(changed.was) == len(changed.now):
        at = "in the last update"  # its loss is kept behind those of the first updates
    return f"{key} differs {at}: {_values(was, now)}{_relative(was, now)}"


def _amount(values: Any) -> str:
    if not isinstance(values, list):
        return _value(values)
    return _value(values[0]) if len(values) == 1 else f"{len(values)} numbers"


def _relative(was: float, now: float) -> str:
    """The change as a share of what was, with its sign."""
    if was == now:
        return " (the same)"
    share = (now - was) / abs(was) if was else math.nan
    return f" ({100 * share:+.3g}%)" if math.isfinite(share) else ""


def _values(was: Any, now: Any) -> str:
    """Two values; real numbers with six digits, or all of them where they are the same by that."""
    if isinstance(was, float) and isinstance(now, float):
        one, other = f"{was:.6g}", f"{now:.6g}"
        return f"{one} -> {other}" if one != other or was == now else f"{was!r} -> {now!r}"
    return _change(_value(was), _value(now))


def _change(was: str, now: str) -> str:
    """Two values as they are shown."""
    return f"was {was}, now {now}" if ABSENT in (was, now) else f"{was} -> {now}"


def _value(value: Any) -> str:
    if value is None:
        return ABSENT
    return shortened(json.dumps(value, ensure_ascii=False), WIDTH)
