"""Describe each bug of the corpus and the same script without it, and write down in which sections they differ.

    python -m scripts.described JOURNAL

JOURNAL has a line for every pair, so that a run that was cut off goes on where it was;
``scripts/records/described.json`` and the table of ``docs/describe.md`` are written at the end. It takes about a
quarter of an hour of two cores.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.baseline.training_file import section_of
from harness.files import write_atomically
from scripts.detection import ROOT, on_servers
from scripts.margins import name_of
from tests.checks.corpus import Case, all_cases
from tests.server import CHECKPOINT, Server

RECORD = ROOT / "scripts" / "records" / "described.json"
PAGE = ROOT / "docs" / "describe.md"
MARK = "<!-- Written by python -m scripts.described -->\n"

NAMES = {
    "gradients": {"update", "loss"},
    "groups": {"optimizer", "schedule"},
    "inputs": {"data", "taught"},
    "loss": {"loss", "taught"},
    "memory": {"update", "loss", "model"},
    "metrics": {"metric", "evaluation"},
    "mode": {"model", "evaluation"},
    "model": {"model", "evaluation"},
    "optimizer": {"optimizer", "update"},
    "parameters": {"model", "optimizer"},
    "ranks": {"data", "model"},
    "rows": {"data"},
    "saved": {"saved", "loaded"},
    "settings": {"optimizer", "schedule"},
    "schedule": {"schedule"},
    "update": {"update", "optimizer"},
    "weights": {"model", "loaded", "saved", "evaluation"},
}
"""By family of checks, the sections of which one must differ for the page to name what the bug does. Written before
anything was measured, but for the section of what is loaded, which was not there yet."""


@dataclass(frozen=True)
class Pair:
    """A script with a bug, and the same without it."""

    name: str
    kind: str
    bug: Case
    right: Case

    @property
    def family(self) -> str:
        return (self.bug.check or "").partition("::")[0]


def pairs() -> Iterator[Pair]:
    """Each edit that puts a bug in, and each ``bad.py`` beside its ``good.py``."""
    cases = [case for case in all_cases() if not case.needed and case.processes == 1]
    as_it_is = {(case.script, case.pretrained): case for case in cases if case.kind == "as it is"}
    examples = {case.check: case for case in cases if case.kind == "good"}
    for case in cases:
        if case.kind in ("bug", "unseen") and (right := as_it_is.get((case.script, case.pretrained))):
            yield Pair(name_of(case), "seen" if case.kind == "bug" else "unseen", case, right)
        elif case.kind == "bad" and case.check in examples:
            yield Pair(name_of(case), "seen", case, examples[case.check])


def facts_of(server: Server, case: Case) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The facts and the numbers of a script that is run whole; None where it cannot be described."""
    with tempfile.TemporaryDirectory(dir=server.folder) as name:
        folder = Path(name)
        (folder / case.script).write_text(case.text, encoding="utf-8")
        checkpoint = CHECKPOINT if case.pretrained else server.checkpoint
        command = ("describe", "--full", "--json", "found.json", case.script, str(server.data), str(checkpoint))
        server.run(folder, *command, environment=case.environment)
        if not (folder / "found.json").exists():
            return None
        found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return {k: v for line in found["lines"] for k, v in line["facts"].items()}, found["numbers"]


OTHERWISE = {"PYTHONHASHSEED": "4711", "OMP_NUM_THREADS": "2"}
"""What is different where a script without a bug runs again: no fact of its behaviour may be."""

RIGHT: dict[str, tuple[Any, Any]] = {}
"""By what scripts say, what two runs of them came to: many bugs are edits of one script."""

OTHERS: dict[int, Server] = {}
"""Beside each server, one in which things are as in OTHERWISE."""


def twice(server: Server, case: Case) -> tuple[Any, Any]:
    """What a script came to, as it is and in another environment."""
    key = f"{case.pretrained}{case.environment}{case.text}"
    if key not in RIGHT:
        if id(server) not in OTHERS:
            OTHERS[id(server)] = Server(OTHERWISE)
        other = OTHERS[id(server)]
        RIGHT[key] = facts_of(server, case), facts_of(other, case)
    return RIGHT[key]


class _Renamed(ast.NodeTransformer):
    """A variable of the script by another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = f"{node.id}_again" if node.id == self._name else node.id
        return node


def harmless(text: str) -> Iterator[tuple[str, str]]:
    """Edits that change nothing of what a script does, each with what it is."""
    tree = ast.parse(text)
    yield "lines before it", "\n\n# a comment\n\n" + text
    yield "written anew", ast.unparse(tree)
    yield "a print in each loop", re.sub(r"^( *)(for .*:\n)", r"\1\2\1    print('here')\n", text, flags=re.MULTILINE)
    if "num_workers" not in text and "DataLoader(" in text:
        yield "two workers", text.replace("DataLoader(", "DataLoader(num_workers=2, dataset=", 1)
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    defined = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} | {"self"}
    for name in [name for name in dict.fromkeys(stored) if name not in defined][:1]:
        yield "a variable renamed", ast.unparse(_Renamed(name).visit(ast.parse(text)))
    at_the_top = any(isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.ImportFrom)) for node in tree.body)
    if not at_the_top:
        yield "in a function", "def main():\n" + textwrap.indent(text, "    ") + "\n\nmain()\n"


def unchanged(server: Server, case: Case) -> dict[str, list[str]]:
    """By harmless edit, the facts that differ all the same; of a script that runs under the edit."""
    before = facts_of(server, case)
    found = {}
    for name, text in harmless(case.text):
        after = facts_of(server, replace(case, text=text))
        if before is not None and after is not None:
            found[name] = differing(before[0], after[0])
    return found


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys in which two runs differ."""
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))


def measured(server: Server, pair: Pair) -> dict[str, Any]:
    """What differs between the two, and between two runs of the right one."""
    bug, (right, again) = facts_of(server, pair.bug), twice(server, pair.right)
    if bug is None or right is None or again is None:
        return {"described": False}
    keys = differing(right[0], bug[0])
    sections = sorted({section_of(key) for key in keys})
    return {
        "described": True,
        "sections": sections,
        "keys": keys[:20],
        "numbers": bug[1] != right[1],
        "again": differing(right[0], again[0]),
    }


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """By family: pairs, those that differ in behaviour, and those of which a section that names the bug does."""
    families: dict[str, Counter[str]] = {}
    for each in found.values():
        counts = families.setdefault(each["family"], Counter())
        counts["pairs"] += 1
        counts["differ"] += bool(each.get("sections"))
        counts["named"] += bool(NAMES[each["family"]].intersection(each.get("sections", ())))
        counts["numbers"] += bool(not each.get("sections") and each.get("numbers"))
        counts["unseen"] += each["kind"] == "unseen"
        counts["unseen differ"] += each["kind"] == "unseen" and bool(each.get("sections"))
    columns = ("pairs", "differ", "named", "numbers", "unseen", "unseen differ")
    whole = sum(families.values(), Counter())
    rows = [*sorted(families.items()), ("**all**", whole)]
    return "\n".join(
        [
            "| family | pairs | behaviour differs | in a section that names it | only numbers differ "
            "| bugs that no check sees | of these, behaviour differs |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(f"| {name} | {' | '.join(str(counts[each]) for each in columns)} |" for name, counts in rows),
        ]
    )


def sentence(found: Mapping[str, Mapping[str, Any]], edited: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """What did not differ where nothing was changed."""
    rights = {each["right"]: each["again"] for each in found.values() if each.get("described")}
    same = sum(not each for each in rights.values())
    edits = [differ for each in edited.values() for differ in each.values()]
    counted = f"{sum(not each for each in edits)} of {len(edits)}"
    return (
        f"Run again with another hash of strings and another number of threads, {same} of {len(rights)} scripts "
        f"without a bug have the same facts; so do {counted} harmless edits (lines, prints, names, a function, "
        f"workers) of {len(edited)} scripts."
    )


def _journaled(journal: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ())


def main(journal: Path) -> None:
    known = {pair.name: pair for pair in pairs()}
    rights = {name_of(case): case for case in all_cases() if case.kind == "as it is" and not case.needed}
    rights = {name: case for name, case in rights.items() if case.processes == 1 and not case.pretrained}
    found = {each["name"]: each for each in _journaled(journal) if each["name"] in known}
    edited = {each["name"]: each["edits"] for each in _journaled(journal) if "edits" in each}
    with journal.open("a", encoding="utf-8") as out:
        for pair, came in on_servers(measured, [pair for name, pair in known.items() if name not in found]):
            of = {"name": pair.name, "right": name_of(pair.right), "family": pair.family, "kind": pair.kind}
            found[pair.name] = of | came
            print(json.dumps(found[pair.name]), file=out, flush=True)
        for case, edits in on_servers(unchanged, [case for name, case in rights.items() if name not in edited]):
            edited[name_of(case)] = edits
            print(json.dumps({"name": name_of(case), "edits": edits}), file=out, flush=True)
    for each in OTHERS.values():
        each.close()
    lines = ",\n".join(f"  {json.dumps(found[name])}" for name in sorted(found))
    harmless_edits = json.dumps(edited, indent=1)
    write_atomically(RECORD, f'{{"schema": 1, "pairs": [\n{lines}\n ],\n "harmless": {harmless_edits}}}\n')
    page = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    write_atomically(PAGE, f"{page}{MARK}\n{table(found)}\n\n{sentence(found, edited)}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("expected one argument, the file of the journal: python -m scripts.described JOURNAL")
    main(Path(sys.argv[1]))
