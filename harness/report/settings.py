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
        for apart in several:
            at = f"update {apart.update}: " if apart.update is not None else ""
            part = f"{apart.part}, {apart.what}" if apart.part and apart.what else apart.part or apart.what
            yield f"    {apart.shown:<{width}}  {f'{at}{part}':<40}  {apart.where}".rstrip()
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
