"""How a training compares with its baseline, as lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.baseline.trainings import NUMBERS, first_update, said
from harness.findings import shortened

if TYPE_CHECKING:
    from harness.baseline.trainings import Changed, TrainingVerdict

MOST_FACTS = 8
"""Facts of a section that are shown."""

WIDTH = 160
"""Characters of a value that are shown."""


def verdict_lines(verdict: TrainingVerdict) -> Iterator[str]:
    """The first section that differs, whole; of those behind it, which may follow from it, the first fact each."""
    for each in verdict.findings:
        yield f"{verdict.name}: error: {said(each)}"
    if not verdict.changed:
        if not verdict.findings:
            yield f"{verdict.name}: does what its baseline says, in {verdict.facts} facts; {verdict.lane}"
        return
    section, *behind = verdict.changed
    place = f" ({verdict.where[section]})" if section in verdict.where else ""
    yield f"{verdict.name}: {section} differ{'' if section == NUMBERS else 's'} from the baseline{place}"
    was, now = verdict.says.get(section, ("", ""))
    if was != now:
        yield f"  was  {was or 'nothing'}"
        yield f"  now  {now or 'nothing'}"
    yield from section_lines(verdict.changed[section])
    for other in behind:
        of_it = verdict.changed[other]
        more = f", and {len(of_it) - 1} more" if len(of_it) > 1 else ""
        yield f"  {other} differ{'' if other == NUMBERS else 's'} too:{next(section_lines(of_it))[1:]}{more}"
    yield f"  {verdict.lane}"
    yield f"  If it is meant: harness baseline accept {verdict.name} {section} --why TEXT"
    if behind:
        yield f"  If all of it is: harness baseline accept {verdict.name} all --why TEXT"


def section_lines(changed: list[Changed]) -> Iterator[str]:
    """What was, and what is, fact by fact."""
    for each in changed[:MOST_FACTS]:
        update = first_update(each) if each.section == NUMBERS else None
        at = f" (from number {update} on)" if update else ""
        yield f"  {each.key}{at}: {_value(each.was)} -> {_value(each.now)}"
    if len(changed) > MOST_FACTS:
        yield f"  and {len(changed) - MOST_FACTS} more"


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    return shortened(json.dumps(value, ensure_ascii=False), WIDTH)
