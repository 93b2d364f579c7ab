from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from harness.findings import tree_at
from harness.watch.bounded import First
from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.events import Backward, End

LABELS = re.compile(r"(^|_)(y|ys|labels?|targets?|answers?|truths?|outcomes?)(_|$|\d)", re.IGNORECASE)
"""Names of labels."""

DRAWS = ("randperm", "permutation")

MAX_STATEMENTS_APART = 4
"""Statements between which the two belong together."""


class ShuffledApart(Check):
    """Inputs and labels are shuffled separately, so rows are paired with the labels of other rows.

    ## Why is this a bug?
    `x[torch.randperm(n)]` and `y[torch.randperm(n)]` put what belongs together into two different orders. The model is
    taught noise: its loss falls to that of guessing and stays there.

    ## What to do
    Draw one permutation and use it for both: `order = torch.randperm(n); x, y = x[order], y[order]`.

    ## When it is right
    The check reads the script here, around the line of an update: it looks for two neighbouring statements that shuffle
    something named as labels, and something else, by one permutation each. Labels that are shuffled alone, to see what
    a model makes of noise, are not reported, nor are statements with a seed in between.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.randperm.html
    """

    new_since = "0.3.0"

    needs = "permutations that the script's file draws"

    def begin(self) -> None:
        self._places = First[str]()
        """A line of each file in which a backward pass was begun."""
        self._any = False

    def on_backward(self, event: Backward) -> None:
        if event.where is not None:
            file = event.where.rpartition(":")[0]
            if all(each.rpartition(":")[0] != file for each in self._places):
                self._places.append(event.where)

    def on_end(self, event: End) -> None:
        for place in self._places:
            tree, _ = tree_at(place)
            shuffling = {"shuffle", *_shuffling_functions(tree)}
            self._read_loops(tree, place.rpartition(":")[0])
            for body in _blocks(tree):
                self._read(body, shuffling, place.rpartition(":")[0])
        if self._any:
            self.says(self.judge(None))

    def _tell_of(self, apart: str, file: str, line: int) -> None:
        self.says(self.judge(apart), f"{file}:{line}")

    def _read(self, body: list[ast.stmt], shuffling: set[str], file: str) -> None:
        drawn: dict[str, int] = {}
        """Name to the statement that gave it a permutation."""
        shuffled: list[tuple[int, str, object]] = []
        """The number of a statement, what it shuffles, and by which permutation."""
        for number, statement in enumerate(body):
            if _seeds(statement):
                shuffled.clear()
            for target, value in _assignments(statement):
                if _draws(value):
                    drawn[target] = number
                for taken, by in _taken(value, shuffling):
                    permutation = drawn.get(by) if isinstance(by, str) else by
                    if permutation is not None:
                        self._any = True
                        shuffled.append((statement.lineno, taken, permutation))
            if (name := _shuffled_in_place(statement)) is not None:
                self._any = True
                shuffled.append((statement.lineno, name, statement))
        for (line, one, by), (other_line, other, by_other) in pairwise(shuffled):
            near = other_line - line <= MAX_STATEMENTS_APART
            if (
                near
                and by is not by_other
                and by != by_other
                and bool(LABELS.search(one)) != bool(LABELS.search(other))
            ):
                self._tell_of(
                    f"lines {line} and {other_line} shuffle {one} and {other} by different permutations",
                    file,
                    other_line,
                )

    def _read_loops(self, tree: ast.Module, file: str) -> None:
        """Inputs that are shuffled in each epoch, beside labels that are not, of which batches are slices."""
        named = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        for loop in ast.walk(tree):
            if not isinstance(loop, ast.For | ast.While):
                continue
            drawn = {target for each in loop.body for target, value in _assignments(each) if _draws(value)}
            if not drawn:
                continue
            sliced = {
                ast.unparse(node.value)
                for node in ast.walk(loop)
                if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
            }
            for statement in loop.body:
                for target, value in _assignments(statement):
                    taken = [(name, by) for name, by in _taken(value, set()) if name == target]
                    if not taken or not isinstance(taken[0][1], str) or named[taken[0][1]] != 2:
                        continue  # the permutation is drawn, and takes this alone
                    self._any = True
                    others = [each for each in sliced if LABELS.search(each) and each != target]
                    if target in sliced and others and not LABELS.search(target):
                        beside = f"{target} is shuffled in each epoch, but {others[0]}, which has its labels, is not"
                        self._tell_of(beside, file, statement.lineno)

    @staticmethod
    def judge(apart: str | None) -> Verdict:
        """Which inputs and labels part, and how; None where none do."""
        if apart is None:
            return HELD
        observed = f"{apart}: rows and labels no longer belong together"
        return Found("the same permutation for inputs and labels", observed)


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        both = isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple)
        if both and len(target.elts) == len(statement.value.elts):  # type: ignore[attr-defined]
            for one, value in zip(target.elts, statement.value.elts, strict=True):  # type: ignore[attr-defined]
                yield ast.unparse(one), value
        else:
            yield ast.unparse(target), statement.value


def _shuffling_functions(tree: ast.AST) -> Iterator[str]:
    """Functions that give the rows of their one argument in an order of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1:
            returned = node.body[-1].value if isinstance(node.body[-1], ast.Return) else None
            if isinstance(returned, ast.Subscript) and _draws(returned.slice):
                yield node.name


def _taken(value: ast.expr, shuffling: set[str]) -> Iterator[tuple[str, object]]:
    """What is taken out of something by an index: x and order for x[order], x and the call for x[randperm(n)]."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and getattr(value.func, "id", None) in shuffling:
        yield ast.unparse(value.args[0]), value
    if isinstance(value, ast.Subscript):
        yield ast.unparse(value.value), value.slice if _draws(value.slice) else ast.unparse(value.slice)


def _draws(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", None)
    return name in DRAWS


def _shuffled_in_place(statement: ast.stmt) -> str | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or not isinstance(call.func, ast.Attribute):
        return None
    return ast.unparse(call.args[0]) if call.func.attr == "shuffle" else None


def _seeds(statement: ast.stmt) -> bool:
    return any("seed" in getattr(each, "attr", "") for each in ast.walk(statement))
