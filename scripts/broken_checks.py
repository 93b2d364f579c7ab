"""Break each check in each place in which it reports, and see whether what guards every change notices.

    python -m scripts.broken_checks [ID]...

Each ``return Found(…)`` is once made to find nothing, and once the condition that it depends on is inverted. A broken
check that says the same of its facts that are made by hand (``tests/checks/FAMILY/facts.py``), and of its scripts of
the first ring, survives, and needs one more that does not. Writes
``scripts/records/broken-checks.json``; it takes two minutes on two cores. With
names only those checks are broken, and what is written of the others stays.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness import catalogue
from harness.files import write_atomically
from harness.watch.check import Verdict
from scripts.detection import on_servers
from scripts.record_pages import BROKEN
from tests.checks.conftest import must_be_as_said
from tests.checks.corpus import FOLDER, Case, cases_of
from tests.checks.judging import Case as ByHand
from tests.checks.judging import all_cases, is_as_said, judged
from tests.server import Server


@dataclass(frozen=True)
class Broken:
    """A check with one thing changed in it."""

    check: str
    module: str
    line: int
    how: str
    source: str


def broken(check: str) -> Iterator[Broken]:
    """Each way to break a check."""
    kind = catalogue.checks()[check]
    module = inspect.getmodule(kind)
    assert module is not None
    text = inspect.getsource(module)
    for number, line in enumerate(_reports(ast.parse(text), kind.__name__)):
        for how, change in (("its report is removed", _removed), ("its condition is inverted", _inverted)):
            tree = ast.parse(text)
            if change(tree, list(_reports(tree, kind.__name__))[number]):
                yield Broken(check, module.__name__, line.lineno, how, ast.unparse(tree))


def _reports(tree: ast.AST, name: str) -> Iterator[ast.Expr | ast.Return]:
    """The statements of a check's class that report a finding, in order."""
    for kind in ast.walk(tree):
        for node in ast.walk(kind) if isinstance(kind, ast.ClassDef) and kind.name == name else ():
            if isinstance(node, ast.Return | ast.Expr) and any(map(_finds, ast.walk(node))):
                yield node


def _finds(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("Found", "self.found")


def _removed(tree: ast.AST, report: ast.Expr | ast.Return) -> bool:
    report.value = ast.parse("NOTHING_TO_JUDGE" if isinstance(report, ast.Return) else "None", mode="eval").body
    if isinstance(tree, ast.Module):
        (future,) = (number for number, each in enumerate(tree.body) if ast.unparse(each).startswith("from __future__"))
        tree.body.insert(future + 1, ast.parse("from harness.watch.check import NOTHING_TO_JUDGE").body[0])
    return True


def _inverted(tree: ast.AST, report: ast.Expr | ast.Return) -> bool:
    """The innermost ``if`` that the report stands in, or else the last one before it that returns."""
    before: list[ast.If] = []
    inside: list[ast.If] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            if any(each is report for each in ast.walk(node)):
                inside.append(node)
            elif node.lineno < report.lineno and isinstance(node.body[-1], ast.Return | ast.Continue | ast.Break):
                before.append(node)
    of_function = [each for each in before if _function_of(tree, each) is _function_of(tree, report)]
    chosen = max(inside or of_function, key=lambda each: each.lineno, default=None)
    if chosen is None:
        return False
    chosen.test = ast.UnaryOp(ast.Not(), chosen.test)
    ast.fix_missing_locations(tree)
    return True


def _function_of(tree: ast.AST, node: ast.AST) -> ast.AST | None:
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    around = [each for each in functions if any(inner is node for inner in ast.walk(each))]
    return max(around, key=lambda each: each.lineno, default=None)


def survives(server: Server, change: Broken) -> bool:
    """Whether every guard of the check passes all the same: facts that are made by hand, and scripts."""
    if not all(is_as_said(case, verdict) for case, verdict in _judged_by_hand(change)):
        return False
    family, _, name = change.check.partition("::")
    return all(_passes(server, case, change) for case in cases_of(FOLDER / family / name) if case.guards)


def _judged_by_hand(change: Broken) -> Iterator[tuple[ByHand, Verdict | None]]:
    """What the broken check says of each fact that is made by hand for it; None where it fails."""
    known = dict(catalogue._registered)
    namespace: dict[str, Any] = {"__name__": change.module}
    exec(change.source, namespace)  # noqa: S102 - the check's own source, with one thing changed
    catalogue._registered.clear()
    catalogue._registered.update(known)
    for case in all_cases():
        if case.check.id == change.check:
            try:
                yield case, judged(namespace[case.check.__name__], case.fact)
            except Exception:  # noqa: BLE001 - however it fails, it is noticed
                yield case, None


def _passes(server: Server, case: Case, change: Broken) -> bool:
    if case.needed:
        return True
    try:
        must_be_as_said(case, server.watch(case, sources={change.module: change.source}))
    except AssertionError:
        return False
    return True


def main(names: Sequence[str]) -> None:
    changes = [each for check in names or catalogue.checks() for each in broken(check)]
    kept: list[dict[str, Any]] = json.loads(BROKEN.read_text())["broken"] if names and BROKEN.exists() else []
    entries = [each for each in kept if each["check"] not in names]
    for change, lives in on_servers(survives, changes):
        entries.append({"check": change.check, "line": change.line, "how": change.how, "survives": lives})
        if lives:
            print(f"{change.check}, line {change.line}: {change.how}, and nothing notices", file=sys.stderr)
    entries.sort(key=lambda each: (each["check"], each["line"], each["how"]))
    write_atomically(BROKEN, json.dumps({"schema": 1, "broken": entries}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
