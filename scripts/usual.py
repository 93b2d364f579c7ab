"""How often correct trainings have each fact that ``harness describe`` judges, and what that marks.

    python -m scripts.usual JOURNAL

describes the programs of SilentTrain, and programs of a folder of other people's code (``HARNESS_CORPORA``), into
JOURNAL, a line for each, so that a run that was cut off goes on where it was; then writes
``harness/describe/usual.json`` and the table of docs/unusual.md. It takes about half an hour of two cores.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.describe.description import Line
from harness.describe.judged import judged
from harness.describe.unusual import LANGUAGE_MODELS, TRAININGS, Usual, group_of, unusual
from harness.files import write_atomically
from scripts.detection import ROOT, on_servers
from tests.programs import PARTS, versions_of
from tests.server import Server

TABLE = ROOT / "harness" / "describe" / "usual.json"
PAGE = ROOT / "docs" / "unusual.md"
MARK = "<!-- Written by python -m scripts.usual -->\n"
CORPORA = Path(os.environ.get("HARNESS_CORPORA") or "absent")
JUDGED = ("course", "forum", "llm", "reports", "reports2")
"""Sets of which the versions with a bug are described, too: by how many of them a line is marked, marks are judged."""

LIMIT = 240
"""Seconds after which a program is ended."""


@dataclass(frozen=True)
class Source:
    """A program that is described."""

    name: str
    part: str
    """What set it is from: its programs have authors or templates in common."""
    project: str
    """What counts once: a program and its twins."""
    right: bool
    text: str
    file: str
    arguments: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.text}{self.arguments}None".encode()).hexdigest()[:16]


def sources() -> Iterator[Source]:
    for part in (*PARTS, "resume"):
        for version in versions_of(part):
            if version.program.processes == 1 and (version.kind == "right" or part in JUDGED):
                about = (f"{part}/{version.program.id}", version.kind == "right", version.path.read_text("utf-8"))
                yield Source(
                    f"{part}/{version.name}", part, *about, version.file.name, tuple(version.program.arguments)
                )
    for part in ("reports2", "reports", "llm", "course", "forum"):
        for kind in ("bugs", "right", "right_too", "clean", "fixed"):
            for path in sorted((CORPORA / part / kind).rglob("*.py")):
                name = f"{part}/{path.stem}"
                yield Source(
                    f"shared {part}/{kind}/{path.stem}", part, name, kind != "bugs", path.read_text("utf-8"), path.name
                )


def described(server: Server, source: Source) -> dict[str, Any]:
    """Its page, and what was found in it."""
    with tempfile.TemporaryDirectory(dir=server.folder) as name:
        folder = Path(name)
        (folder / source.file).write_text(source.text, encoding="utf-8")
        done = server.run(folder, "describe", "--json", "found.json", source.file, *source.arguments, limit=LIMIT)
        if not (folder / "found.json").exists():
            return {"failed": done.stderr[-300:]}
        found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    lines = [{**line, "where": None} for line in found["lines"]]
    return {"updates": found["updates"], "lines": lines, "found": [each["check"] for each in found["findings"]]}


def facts_in(lines: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """The judged facts of a page, each with the group of projects among which it is compared."""
    pages = [Line(line["section"], line["text"], line["facts"]) for line in lines]
    return {(group_of(line), fact) for line in pages for fact in judged(line)}


def table_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, Usual]:
    """How many correct projects there are by group, and how many have each fact."""
    having: dict[tuple[str, str], set[str]] = {}
    projects: dict[str, set[str]] = {TRAININGS: set(), LANGUAGE_MODELS: set()}
    for entry in entries:
        facts = facts_in(entry["lines"])
        for group in {TRAININGS, *(group for group, _ in facts)}:
            projects[group].add(entry["project"])
        for fact in facts:
            having.setdefault(fact, set()).add(entry["project"])
    return {
        group: Usual(len(known), {fact: len(its) for (of, fact), its in sorted(having.items()) if of == group})
        for group, known in projects.items()
    }


def validated(entries: Sequence[Mapping[str, Any]], *, by: str) -> dict[str, Any]:
    """How many lines of correct trainings are marked by a table without their own project, or their own set."""
    marks: list[int] = []
    for apart in sorted({entry[by] for entry in entries}):
        table = table_of(entry for entry in entries if entry[by] != apart)
        for entry in entries:
            if entry[by] == apart:
                lines = [Line(line["section"], line["text"], line["facts"]) for line in entry["lines"]]
                marks.append(len(list(unusual(lines, table))))
    return {"marks": sum(marks), "without": marks.count(0), "trainings": len(marks)}


def page_of(table: Mapping[str, Usual], found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of docs/unusual.md."""
    rows = []
    for group, known in table.items():
        rows += [f"| {fact} | {group} | {times} of {known.projects} |" for fact, times in known.facts.items()]
    said = [
        f"Marked by a table without the training's own {by}: {each['marks'] / each['trainings']:.2f} lines a training; "
        f"{each['without'] / each['trainings']:.0%} of {each['trainings']} correct trainings have none."
        for by, each in found.items()
    ]
    return "\n".join([*said, "", "| fact | among | correct projects |", "| --- | --- | ---: |", *rows])


def main(journal: str) -> None:
    file = Path(journal)
    known = {json.loads(line)["key"] for line in file.read_text().splitlines()} if file.exists() else set()
    wanted: dict[str, Source] = {}
    for source in sources():
        if source.key not in known:
            wanted.setdefault(source.key, source)
    with file.open("a") as out:
        for source, found in on_servers(described, list(wanted.values())):
            about = {"key": source.key, "name": source.name, "part": source.part, "project": source.project}
            out.write(json.dumps({**about, "right": source.right, **found}) + "\n")
            out.flush()
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    right = [entry for entry in entries if entry["right"] and "lines" in entry]
    table = table_of(right)
    groups = {group: {"projects": each.projects, "facts": each.facts} for group, each in table.items()}
    record = {"schema": 1, "recorded": time.strftime("%Y-%m-%d"), "groups": groups}
    write_atomically(TABLE, json.dumps(record, indent=1) + "\n")
    found = {"project": validated(right, by="project"), "set": validated(right, by="part")}
    before, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    write_atomically(PAGE, f"{before}{MARK}\n{page_of(table, found)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
