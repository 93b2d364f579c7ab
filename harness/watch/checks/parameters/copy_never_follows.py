from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from harness.findings import tree_at
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.facts.copies import CopyOver

MIN_UPDATES = 50
"""Updates of the network from which on a copy that is to follow it would have done so. Half or double of it changes
verdicts (scripts/records/margins.json)."""

NEW_TENSOR = ("add", "sub", "mul", "div", "lerp", "copy", "addcmul")
"""Methods that give a new tensor; those that write into the old one end in an underscore."""


class CopyNeverFollows(Check):
    """A copy of the network never changes, although a line of the script should update it.

    ## Why is this a bug?
    `target = tau * online + (1 - tau) * target` in a loop over parameters binds the name to another tensor.
    `target.mul(0.99)` returns a new tensor that nobody keeps. `target.state_dict().update(...)` changes a dictionary
    that exists only for that call. A loop over the target's own parameters twice mixes it with itself. The target stays
    as it was initialised, and the network learns noise from it.

    ## What to do
    Write into the parameters, under `torch.no_grad()`: `target.lerp_(online, tau)`, `target.data.copy_(online.data)`,
    or `target_net.load_state_dict(net.state_dict())`.

    ## When it is right
    A copy that should stay as it is, such as a reference or a teacher, is not reported: no line is meant to change it.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.state_dict
    """

    new_since = "0.3.0"
    needs = "network that is to follow a trained one"

    def judge(self, fact: CopyOver) -> Verdict:
        if fact.follows:
            return HELD
        if fact.updates < MIN_UPDATES or not fact.apart or fact.where is None or not fact.at.complete:
            return NOTHING_TO_JUDGE
        file = fact.where.rpartition(":")[0]
        for line, why in _lines(file, fact.loaded):
            return Found(
                expected="a copy that this line updates from the network",
                observed=f"{fact.shown} never changed in {fact.updates} updates of the network: {why}",
                where=f"{file}:{line}",
            )
        return NOTHING_TO_JUDGE


def _lines(file: str, loaded: Collection[str | None]) -> Iterator[tuple[int, str]]:
    """The lines of a file that are to change a copy and do not, each with the reason."""
    tree, _ = tree_at(f"{file}:1")
    for node in ast.walk(tree):
        if (isinstance(node, ast.Expr) and _is_call(node.value, "update") and _of_state(node.value)) or (
            isinstance(node, ast.Assign) and any(_is_item_of_state(target) for target in node.targets)
        ):
            yield node.lineno, "state_dict() returns a new dictionary, which is never loaded"
        elif isinstance(node, ast.For) and _is_over_parameters(node):
            assert isinstance(node.iter, ast.Call)
            one, other = map(ast.unparse, node.iter.args)
            if one == other:
                yield node.lineno, f"this line goes through {one} twice, so the copy is mixed with itself"
            yield from _that_keep_nothing(node)
    yield from _never_run(tree, {line.rpartition(":")[2] for line in loaded if line is not None})


def _never_run(tree: ast.AST, loaded: Collection[str]) -> Iterator[tuple[int, str]]:
    """Lines that copy one network's state into another and were never come to."""
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For | ast.While | ast.FunctionDef):
            continue
        for node in ast.walk(loop):
            if not isinstance(node, ast.Expr) or not _is_call(node.value, "load_state_dict"):
                continue
            assert isinstance(node.value, ast.Call)
            given = node.value.args[:1]
            if given and _is_call(given[0], "state_dict"):
                spanned = {str(line) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
                if not spanned.intersection(loaded):
                    yield node.lineno, "this line was never reached"


def _is_call(node: ast.expr, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _of_state(node: ast.expr) -> bool:
    assert isinstance(node, ast.Call)
    return isinstance(node.func, ast.Attribute) and _is_call(node.func.value, "state_dict")


def _is_item_of_state(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and _is_call(node.value, "state_dict")


def _is_over_parameters(loop: ast.For) -> bool:
    """Whether it goes through the parameters of two networks together."""
    if not isinstance(loop.target, ast.Tuple) or not isinstance(loop.iter, ast.Call):
        return False
    given = [*loop.iter.args]
    return len(given) == 2 and all(_is_call(each, "parameters") or _is_call(each, "buffers") for each in given)


def _that_keep_nothing(loop: ast.For) -> Iterator[tuple[int, str]]:
    assert isinstance(loop.target, ast.Tuple)
    named = {each.id for each in loop.target.elts if isinstance(each, ast.Name)}
    if len(loop.body) != 1:
        return
    (only,) = loop.body
    if isinstance(only, ast.Assign) and all(isinstance(each, ast.Name) and each.id in named for each in only.targets):
        yield only.lineno, "this line only binds the name to a new tensor and leaves the parameter unchanged"
    elif isinstance(only, ast.Expr) and any(_is_call(only.value, name) for name in NEW_TENSOR):
        yield only.lineno, "this line makes a new tensor and drops it; in-place methods end in an underscore"
