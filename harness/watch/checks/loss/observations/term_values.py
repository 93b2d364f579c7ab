"""Term values: which terms of a loss are exactly 0 over a training, and what numbers terms are multiplied by."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from harness.findings import tree_at
from harness.watch.events import Combined, End, Fact
from harness.watch.recogniser import Recogniser

ALWAYS, MIN_TIMES = 8, 12
"""Additions in each line that are looked at whatever the update is, and from which on a term that is 0 stays so. A
guess."""

MOST_NODES = 12
"""Nodes of a term's graph that are searched for what may be 0 by right. A hinge is near the end."""

MAY_BE_ZERO = ("Relu", "Clamp", "Max", "Min", "Where", "Threshold", "Abs", "HardShrink", "Softplus", "Masked")
"""Operations of penalties that are 0 within a margin."""

OF_A_LAYER = ("Addmm", "Mm", "Bmm", "Convolution", "Softmax", "LogSoftmax", "Embedding", "NativeLayerNorm", "NllLoss")
"""Where the term's own operations end, and those of a model begin."""

MIN_PRODUCTS = 16
"""Products from which on a weight that is always 0 is no beginning any more."""

ROUNDING = ("int", "round", "floor", "trunc")
"""Functions that make whole numbers."""


class TermOverTraining(Fact):
    """A training is over in which terms of a loss were added up. ``where`` is the line."""

    needs = "sum of losses"
    of_run = True
    zeros: int
    """Additions in which one of two terms was 0, and by no margin, mask or weight; below 0 if it was not in some."""
    times: int
    """Additions, of which the first and those in updates that are looked at tell."""


class ZeroTerms(Recogniser):
    makes = (TermOverTraining,)

    def begin(self) -> None:
        self._times: Counter[str | None] = Counter()
        self._zeros: Counter[str | None] = Counter()

    def on_combined(self, event: Combined) -> None:
        if event.sign in ("*", "/"):
            return
        self._times[event.where] += 1
        if self._times[event.where] > ALWAYS and not event.at.sampled:
            return
        parts = [each for each in event.parts if torch.is_tensor(each) and each.requires_grad and each.numel() == 1]
        zero = [each for each in parts if each.detach().item() == 0 and not _may_be_zero(each.grad_fn)]
        # Where both are 0, what they are added to says it.
        self._zeros[event.where] += 1 if 0 < len(zero) < len(parts) else -10 * MIN_TIMES

    def on_end(self, event: End) -> None:
        for where, zeros in self._zeros.items():
            self.tell(TermOverTraining(zeros=zeros, times=self._times[where], where=where))


def _may_be_zero(root: Any) -> bool:
    """Whether something near the end of its graph makes numbers 0: a margin, a mask, or a weight of 0."""
    waiting, seen = [root], 0
    while waiting and seen < MOST_NODES:
        node = waiting.pop(0)
        if node is None or type(node).__name__.startswith(OF_A_LAYER):
            continue
        seen += 1
        name = type(node).__name__
        if name.startswith(MAY_BE_ZERO):
            return True
        if name.startswith("Mul"):
            factors = [getattr(node, f"_saved_{side}", None) for side in ("self", "other")]
            constant = [each for each in factors if torch.is_tensor(each) and not each.requires_grad]
            if any(bool((each == 0).any()) for each in constant) or (None in factors and not constant):
                return True  # a weight that is a number is not kept: it may be 0
        waiting += [each for each, _ in node.next_functions]
    return False


class WeightOfTerm(Fact):
    """A training is over in which a term was multiplied by a number. ``where`` is the line."""

    needs = "weighted term"
    of_run = True
    zeros: int = 0
    """Products with 0."""
    rounded: str | None = None
    """Function that makes a whole number of a factor that was 0 in all products of a whole training, and in many."""


class TermWeights(Recogniser):
    makes = (WeightOfTerm,)

    def begin(self) -> None:
        self._zeros: Counter[str] = Counter()
        """Products with 0, by their lines."""
        self._others: set[str] = set()
        """Lines in which something else than 0 was a factor, too."""

    def on_combined(self, event: Combined) -> None:
        if event.sign != "*" or event.where is None:
            return
        factor = next((part for part in event.parts if type(part) in (int, float)), None)
        if factor == 0:
            self._zeros[event.where] += 1
        elif factor is not None:
            self._others.add(event.where)

    def on_end(self, event: End) -> None:
        whole = event.at.complete and not self.monitor.passes_shortened
        for where in (*self._zeros, *self._others):
            zeros = self._zeros[where]
            zero = whole and zeros >= MIN_PRODUCTS and where not in self._others
            self.tell(WeightOfTerm(zeros=zeros, rounded=_rounded_factor(where) if zero else None, where=where))


def _rounded_factor(where: str) -> str | None:
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
                    return ast.unparse(value)
    return None


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
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return | ast.Assign) and inner.value is not None:
                    yield inner.value


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _rounds(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.FloorDiv)
    return isinstance(node, ast.Call) and _name(node.func) in ROUNDING
