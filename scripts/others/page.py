"""What was found in the sets, for the terminal, docs/benchmarks.md and README: all of it from baselines/others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import __version__, catalogue
from harness.errors import CannotTry
from harness.report.matrix import markdown_table, write_markdown
from harness.report.terminal import table
from scripts.expectations import Manifest, Set
from scripts.others import sets
from scripts.scoreboard import HARNESS, PLAIN, Figures, Outcome, by_tool
from tests.programs import RECORDS, SET

ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
MARKS = ("<!-- others:begin -->", "<!-- others:end -->")

BESIDE = "forum"
"""The part of our own set that other tools are asked about, too."""

HEAD = (
    "tool",
    "bugs",
    "named",
    "pointed at",
    "flagged",
    "right programs",
    "flagged wrongly",
    "warned",
    "not asked",
    "seconds",
)


def cells(figures: Figures) -> tuple[str, ...]:
    named, pointed_at = ("-" if each is None else str(each) for each in (figures.named, figures.pointed_at))
    seconds = "-" if figures.seconds is None else f"{figures.seconds:.1f}"
    not_asked = figures.not_asked + figures.broken
    return (
        *(figures.tool, str(figures.bugs), named, pointed_at, str(figures.flagged), str(figures.right)),
        *(str(figures.false_errors), str(figures.warned), str(not_asked), seconds),
    )


def terminal_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield from table([HEAD, *(cells(each) for each in by_tool(outcomes))])
    yield from (f"does not run by itself: {each.name}: {each.why}" for each in crashed(outcomes))


def crashed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The programs that end with an error of their own."""
    return [each for each in outcomes if each.tool == PLAIN and each.verdict == "broken"]


def manifest_of(name: str) -> Manifest:
    """The expectations of a set that there is a record of."""
    return sets.expectations(name) if name in sets.SETS else Manifest.read(SET / name / "manifest.toml")


def records() -> dict[str, dict[str, Any]]:
    """By the set's name.

    Raises:
        CannotTry: there is none.
    """
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(RECORDS.glob("*.json"))}
    if not found:
        raise CannotTry(f"there is no record in {RECORDS}; python -m scripts.others NAME --record makes one")
    return found


def read(record: dict[str, Any]) -> list[Outcome]:
    return [Outcome(**each) for each in record["outcomes"]]


def page_lines(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A section for each set that others have published, and one for each part of ours."""
    for name in shown(found):
        record, known = found[name], manifest_of(name)
        outcomes = read(record)
        yield f"### {known.set.name}"
        yield ""
        yield from about(name, known.set)
        yield ""
        yield from markdown_table(HEAD, [cells(each) for each in by_tool(outcomes)])
        yield ""
        yield from notes(known, outcomes, record)
        yield ""
    yield "### SilentTrain"
    yield ""
    yield "[Our own set](sets.md#silenttrain), by `harness check`. Its programs were at hand while checks were mended."
    yield ""
    parts = {name: record for name, record in found.items() if (SET / name).is_dir()}
    ours = {
        name: next(each for each in by_tool(read(record)) if each.tool == HARNESS) for name, record in parts.items()
    }
    yield from markdown_table(("part", *HEAD[1:]), [(name, *cells(each)[1:]) for name, each in ours.items()])
    yield ""
    for name, record in parts.items():
        missed = [each.name for each in missed_of(read(record)) if each.verdict == "missed"]
        yield f"- {name}, missed: {', '.join(missed) or 'none'}"
    yield ""
    yield "### Checks that have fired in none of these sets"
    yield ""
    yield "Of those that are no longer new. Each finds its own examples; some fire only as a consequence of another"
    yield "finding, which is counted instead."
    yield ""
    yield ", ".join(f"`{check}`" for check in never_fired(found)) + "."


def never_fired(found: dict[str, dict[str, Any]]) -> list[str]:
    """The checks that were there before this version and that no program of a set has a finding of."""
    outcomes = [each for record in found.values() for each in read(record) if each.tool == HARNESS]
    fired = {said.partition(" ")[2] for each in outcomes for said in each.found}
    release = ".".join(__version__.split(".")[:2])
    before = {
        name for name, check in catalogue.checks().items() if (check.new_since or "0").rpartition(".")[0] < release
    }
    return sorted(before - fired)


def shown(found: dict[str, dict[str, Any]]) -> list[str]:
    """The sets that have a section and a line in README."""
    return [name for name in (*sets.SETS, BESIDE) if name in found]


def missed_of(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """What ``harness check`` does not name, of what a run decides."""
    mine = [each for each in outcomes if each.tool == HARNESS and each.answered]
    return [each for each in mine if each.kind == "bug" and not each.undecidable and each.verdict != "exact"]


def about(name: str, known: Set) -> Iterator[str]:
    where = (
        f"[{known.address}]({known.address}) at {known.version}" if known.address else "[part of this project](sets.md)"
    )
    yield f"{where}; licence: {known.licence}. {known.about}"
    if known.published:
        yield f"Published results: {known.published}"
    yield f"Expectations written on {known.expected}. {known.seen}"
    yield f"Again: `python -m scripts.others {name if name in sets.SETS else f'tests/silenttrain/{name}'}`."


def notes(known: Manifest, outcomes: Sequence[Outcome], record: dict[str, Any]) -> Iterator[str]:
    """What the table does not say: what is missed, and what was left out."""
    mine = [each for each in outcomes if each.tool == HARNESS]
    wrong = {each.id: each.wrong for each in known.program}
    readings = {each.id: each.reading for each in known.program}
    if missed := missed_of(outcomes):
        yield "`harness check` does not name:"
        yield ""
        for each in missed:
            instead = f" (it says {', '.join(each.found)})" if each.found else ""
            yield f"- {each.name}: {wrong[each.name]}{instead}"
        yield ""
    false = [each for each in mine if each.verdict == "false error"]
    for each in false:
        reading = readings.get(each.name.removeprefix("right/"))
        yield f"- **flagged wrongly**: {each.name}: {', '.join(each.found)}" + (f" ({reading})" if reading else "")
    undecided = [each for each in mine if each.undecidable and each.kind == "bug"]
    if undecided:
        said = sum(bool(each.found) for each in undecided)
        yield f"Not counted, since a setting may be meant: {len(undecided)} programs, {said} of them with a finding."
    if lost := crashed(outcomes):
        yield f"Not counted, since they end with an error of their own: {', '.join(each.name for each in lost)}."
    versions = ", ".join(f"{tool} {version}" for tool, version in record["versions"].items())
    yield f"Measured on {record['measured']}: {versions}."


def summary_lines(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Sets by tools: bugs flagged of those that it was asked about, and right programs flagged."""
    figures = {name: {each.tool: each for each in by_tool(read(found[name]))} for name in shown(found)}
    tools = list(dict.fromkeys(tool for each in figures.values() for tool in each))

    def cell(figures: Figures | None) -> str:
        if figures is None:
            return "-"
        return f"{figures.flagged}/{figures.bugs}, {figures.false_errors}/{figures.right}"

    rows = [(name, *(cell(by.get(tool)) for tool in tools)) for name, by in figures.items()]
    yield from markdown_table(("bugs, and correct programs, with an error", *tools), rows)


def record_text(result: dict[str, Any]) -> str:
    """JSON with a line for each outcome."""
    lines = ",\n".join(f"  {json.dumps(each)}" for each in result["outcomes"])
    head = json.dumps({**result, "outcomes": []}, indent=1)
    return head.replace('"outcomes": []', f'"outcomes": [\n{lines}\n ]') + "\n"


def write() -> None:
    """Write the sections of docs/benchmarks.md, and README's table."""
    found = records()
    write_markdown(PAGE, page_lines(found), MARKS)
    write_markdown(README, summary_lines(found), MARKS)
