from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from harness.findings import tree_at
from harness.watch.check import Check
from harness.watch.events import Combined, End
from harness.watch.monitor import Monitor

MIN_TIMES = 16
"""Products from which on a weight that is always 0 is no beginning any more. Neither half nor double of it changes a
verdict of the corpus."""

ROUNDING = ("int", "round", "floor", "trunc")
"""Functions that make whole numbers."""


class WeightRoundedToZero(Check):
    """The weight of a term is rounded down to 0 in the whole training, so that the term never counts.

    ## Why is this a bug?
    `epoch // warmup` is 0 until the warmup is over, while `epoch / warmup` rises; `int(step / total)` is 0 until the
    very end. The term with this weight is computed and logged in every batch, but trains nothing.

    ## What to do
    Divide with `/`, and bound the result with `min(1.0, ...)`.

    ## When it is right
    A weight that is set to 0, by an argument or as a constant, is not reported. Neither is one that depends on a
    condition (`if epoch >= start`), one that is above 0 at any time, or a training run that was shortened.
    """

    status = "new"
    needs = "weighted term"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.times: Counter[str] = Counter()
        """Products with 0, by their lines."""
        self.others: set[str] = set()
        """Lines in which something else than 0 was a factor, too."""

    def on_combined(self, event: Combined) -> None:
        if event.sign != "*" or event.where is None:
            return
        factor = next((part for part in event.parts if type(part) in (int, float)), None)
        if factor is None:
            return
        self.looked = True
        if factor == 0:
            self.times[event.where] += 1
        else:
            self.others.add(event.where)

    def on_end(self, event: End) -> None:
        if not self.monitor.complete or self.monitor.passes_shortened:
            return
        for where, times in self.times.items():
            if times < MIN_TIMES or where in self.others:
                continue
            for rounded in _rounded_factors(where):
                self.found(
                    expected="a weight that is above 0 at some time of the training",
                    observed=f"0 in all {times} products: it comes of `{rounded}`",
                    where=where,
                )


def _rounded_factors(where: str) -> Iterator[str]:
    """What gives a factor in a line a whole number: "epoch // WARMUP"."""
    tree, line = tree_at(where)
    factors: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and node.lineno <= line <= _end(node):
            factors += [node.left, node.right]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult) and node.lineno == line:
            factors.append(node.value)
    for factor in factors:
        for value in [factor, *_given(tree, factor)]:
            for part in ast.walk(value):
                if _rounds(part):
                    yield ast.unparse(value)
                    return


def _end(node: ast.expr) -> int:
    return node.end_lineno or node.lineno


def _given(tree: ast.AST, factor: ast.expr) -> Iterator[ast.expr]:
    """What the name of a factor is given anywhere in its file, or what the function returns that gives it."""
    called = factor.func if isinstance(factor, ast.Call) else None
    name = _name(factor)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target, value in (each for given in node.targets for each in _one_by_one(given, node.value)):
                if name and _name(target) == name:
                    yield value
                    if isinstance(value, ast.Call):
                        yield from _returned(tree, _name(value.func))
        elif isinstance(node, ast.keyword) and name and node.arg == name:
            yield node.value
    if called is not None:
        yield from _returned(tree, _name(called))


def _one_by_one(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return [*zip(target.elts, value.elts, strict=True)]
    return [(target, value)]


def _returned(tree: ast.AST, function: str | None) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for each in ast.walk(node):
                if isinstance(each, ast.Return | ast.Assign) and each.value is not None:
                    yield each.value


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _rounds(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.FloorDiv)
    return isinstance(node, ast.Call) and _name(node.func) in ROUNDING
