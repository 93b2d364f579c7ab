"""The lines of ``harness vary --settings``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from harness.findings import count, lines_apart
from harness.vary.settings.run import SettingsReport
from harness.vary.settings.starts import EFFECTS


def outcome_lines(report: SettingsReport) -> Iterator[str]:
    """What each setting changes, in groups; what was found; how often the script was started."""
    width = max((len(each.shown) for each in report.settings), default=0)
    for effect, settings in groupby(report.settings, key=lambda each: each.effect):
        several = list(settings)
        yield f"  {EFFECTS[effect]}: {count(len(several), 'setting')}"
        for each in several:
            at = f"update {each.update}: " if each.update is not None else ""
            part = f"{each.part}, {each.what}" if each.part and each.what else each.part or each.what
            yield f"    {each.shown:<{width}}  {f'{at}{part}':<40}  {each.where}".rstrip()
    yield from lines_apart(report.findings)
    if report.findings:
        yield ""
    yield from (f"  note: {note}" for note in report.notes)
    passes = " (long epochs were cut; use --full for complete ones)" * report.shortened
    ended = "interrupted: " * report.interrupted
    turned = sum(each.effect != "not turned" for each in report.settings)
    yield (
        f"{report.script}: {ended}{count(turned, 'setting')} turned, {count(len(report.findings), 'finding')}; "
        f"{report.starts} starts of {report.updates} updates{passes}, {report.seconds['in all']:.0f} s"
    )
