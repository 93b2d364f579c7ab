"""Halve and double every numeric constant of the watch, and write down which verdicts change.

    python -m scripts.margins JOURNAL [--new [NAME]...]

watches each script of the corpus once as it is, and once with all constants halved that its check stands on, then
doubled. Where a verdict changes, the constants are parted until each that changes it alone is known. JOURNAL has a line
for every script, so that a run that was cut off goes on where it was; ``scripts/records/margins.json`` is written at
the end. It takes about two hours of one core; with ``--new``, which turns only the constants that are not in
``margins.json`` with their value of now, a part of that; with names (``--new MUCH …``) those of them alone.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from harness import catalogue
from harness.files import write_atomically
from scripts.detection import ROOT, found_in, on_servers
from scripts.record_pages import MARGINS
from tests.checks.corpus import Case, all_cases
from tests.server import Server

WATCH = ROOT / "harness" / "watch"
TURNS = ("halved", "doubled")

SEEN = ("harness.watch.checks", "harness.watch.facts", "harness.watch.run")
"""Where the checks are, and what makes what they judge."""


class Constant(NamedTuple):
    """A number that a module of the watch gives a name."""

    module: str
    name: str
    value: float

    def turned(self, turn: str) -> float:
        """Half or twice of it; of a share near 1 it is the distance from 1 that is halved or doubled."""
        factor = 0.5 if turn == "halved" else 2
        if isinstance(self.value, int):
            return max(int(self.value * factor), 1)
        return 1 - (1 - self.value) * factor if 0.5 <= self.value < 1 else self.value * factor

    def __str__(self) -> str:
        return f"{self.module.removeprefix('harness.watch.')}.{self.name}"


@cache
def constants() -> tuple[Constant, ...]:
    """The constants above 0 of the watch's modules. Those below are labels that torch leaves out, and no amounts."""
    return tuple(each for file in sorted(WATCH.rglob("*.py")) for each in _constants_of(file) if each.value > 0)


def _constants_of(file: Path) -> Iterator[Constant]:
    for statement in _tree(file).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                number = _number(value)
                if number is not None:
                    yield Constant(_module(file), name, number)


def _number(node: ast.expr) -> float | None:
    """What is written there, if it is a number or powers and products of some."""
    for each in ast.walk(node):
        if not isinstance(each, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop):
            return None
    value = eval(compile(ast.Expression(node), "", "eval"))  # noqa: S307 - numbers and operators alone
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


@cache
def stands_on(check: str) -> frozenset[str]:
    """The check's module, and those of the facts, observations and entities that it asks, and that they ask."""
    module = catalogue.checks()[check].__module__
    found, ahead = set(), [ROOT / f"{module.replace('.', '/')}.py"]
    while ahead:
        file = ahead.pop()
        if _module(file) in found or not file.exists():
            continue
        found.add(_module(file))
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(SEEN):
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                ahead += [ROOT / f"{str(each).replace('.', '/')}.py" for each in modules]
    return frozenset(found)


def concerned(case: Case) -> list[Constant]:
    """The constants that may change the verdict: of a bug those of its check and below it, of a right script all."""
    if not case.is_bug or case.check is None:
        return list(constants())
    modules = stands_on(case.check)
    return [each for each in constants() if each.module in modules or not each.module.startswith(SEEN)]


@cache
def importers() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """By constant, the modules that hold it: its own, and those that import it from there."""
    known = {(each.module, each.name): [each.module] for each in constants()}
    for file in sorted((ROOT / "harness").rglob("*.py")):
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    known.get((node.module or "", alias.name), []).append(_module(file))
    return {key: tuple(modules) for key, modules in known.items()}


def verdict_of(server: Server, case: Case, turn: str = "", group: Sequence[Constant] = ()) -> list[Any]:
    """What is found in the script while these constants are turned: of each finding its check and line."""
    for kept in server.data.rglob("cache-*.arrow"):
        kept.unlink()  # what datasets keeps of an earlier run is tokenized no more
    turned = [
        (module, each.name, each.turned(turn)) for each in group for module in importers()[each.module, each.name]
    ]
    verdict = server.watch(case, turned)
    crashed = [verdict.crashed] if verdict.crashed else [each["check"] for each in verdict.not_looked_at]
    return [*([each["check"], each["line"]] for each in found_in(verdict)), *crashed]


def alone(server: Server, case: Case, turn: str, group: Sequence[Constant], before: list[Any]) -> Iterator[Constant]:
    """Those of the group that change the verdict by themselves, as far as the halves of a group show them."""
    if verdict_of(server, case, turn, group) == before:
        return
    if len(group) == 1:
        yield group[0]
        return
    middle = len(group) // 2
    for half in (group[:middle], group[middle:]):
        yield from alone(server, case, turn, half, before)


def measured(server: Server, case: Case, among: Sequence[Constant] | None = None) -> dict[str, list[str]]:
    """By turn, the constants that change the verdict on this script; of all, or among these."""
    turnable = [each for each in concerned(case) if among is None or each in among]
    before, changed = verdict_of(server, case) if turnable else [], {}
    for turn in TURNS:
        group = [each for each in turnable if each.turned(turn) != each.value]
        if not group:
            changed[turn] = list[str]()
            continue
        changed[turn] = [str(each) for each in alone(server, case, turn, group, before)]
    return changed


def name_of(case: Case) -> str:
    """What tells a case from every other: examples are called alike in all folders."""
    return case.name if case.check is None or not case.name.endswith(".py") else f"{case.check}/{case.name}"


def summed(by_case: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Any]:
    """``margins.json``: by constant its value, and the scripts whose verdicts half and double of it change."""
    table: dict[str, Any] = {str(each): {"value": each.value, **{turn: [] for turn in TURNS}} for each in constants()}
    for name, turns in sorted(by_case.items()):
        for turn, changed in turns.items():
            for each in changed:
                if each in table:
                    table[each][turn].append(name)
    return {"schema": 1, "scripts": len(by_case), "constants": table}


def updated(recorded: Mapping[str, Any], found: Mapping[str, Any], among: Sequence[Constant]) -> dict[str, Any]:
    """The record after some were measured again: a constant that never was stays out, one that is gone goes."""
    kept = {name: entry for name, entry in recorded.items() if name in found}
    return kept | {str(constant): found[str(constant)] for constant in among}


def unmeasured() -> list[Constant]:
    """Those that are not in the record with their value of now."""
    recorded = _read(MARGINS)["constants"]
    return [each for each in constants() if recorded.get(str(each), {}).get("value") != each.value]


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def main(journal: Path, *, new: bool = False, names: Sequence[str] = ()) -> None:
    among = [each for each in unmeasured() if not names or each.name in names] if new else None
    cases = {name_of(case): case for case in all_cases() if not case.needed and case.processes == 1}
    written = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    by_case = {each["name"]: each["changed"] for each in map(json.loads, written) if each["name"] in cases}
    missing = [case for name, case in cases.items() if name not in by_case]
    with journal.open("a", encoding="utf-8") as out:
        for case, changed in on_servers(partial(measured, among=among), missing):
            by_case[name_of(case)] = changed
            print(json.dumps({"name": name_of(case), "changed": changed}), file=out, flush=True)
    margins = summed(by_case)
    if among is not None:
        margins["constants"] = updated(_read(MARGINS)["constants"], margins["constants"], among)
    write_atomically(MARGINS, json.dumps(margins, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[2:3] not in ([], ["--new"]):
        sys.exit("expected the file of the journal: python -m scripts.margins JOURNAL [--new [NAME]...]")
    main(Path(sys.argv[1]), new=len(sys.argv) > 2, names=sys.argv[3:])
