"""World size in a script's text: which names hold the number of processes, and which lines divide by it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from harness.findings import lines_at, tree_at

WORLD = re.compile(r"world|n_?procs|num_processes|n_?ranks|n_?gpus|device_count|num_replicas", re.IGNORECASE)
"""What the number of processes is called by libraries, launchers and most people."""

KEEPING = frozenset({"int", "float", "max", "min", "tensor", "as_tensor", "get", "getenv", "getattr", "item", "size"})
"""Functions that give their argument back, or one of two."""

DIVIDING = frozenset({"div", "div_", "divide", "divide_", "true_divide", "true_divide_"})
MULTIPLYING = frozenset({"mul", "mul_", "multiply", "multiply_"})

Powers = Mapping[str, int]
"""Names to the power in which they hold the number of processes: -1 for its inverse."""


def divides(where: str | None, files: Collection[str]) -> str | None:
    """FILE:LINE where a line divides by the number of processes, or multiplies by its inverse.

    ``where`` is a line that scales something; None for a call of torch.div or torch.mul in any of the files, which are
    searched for the names that hold that number.
    """
    # To parse all files of a large project takes seconds.
    trees = {file: tree_at(f"{file}:1")[0] for file in files if any(map(WORLD.search, lines_at(f"{file}:1")[0]))}
    if where is None:
        powers = held(trees.values())
        calls = [(file, node) for file, tree in trees.items() for node in _divisions(tree, powers) if _is_torchs(node)]
        return next((f"{file}:{node.lineno}" for file, node in calls), None)
    tree, line = tree_at(where)
    powers = held([*trees.values(), tree])
    there = (node.lineno <= line <= (node.end_lineno or node.lineno) for node in _divisions(tree, powers))
    return where if any(there) else None


def held(trees: Iterable[ast.AST]) -> dict[str, int]:
    """Names, attributes and functions that hold the number of processes, a multiple of it, or its inverse.

    By the last part of a name, wherever it is: a value keeps its origin in an attribute, an argument or a field.
    """
    nodes = [node for tree in trees for node in ast.walk(tree)]
    given = list(_given(nodes))
    powers: dict[str, int] = {}
    known = -1
    while known < len(powers):  # until nothing more is given what another name holds
        known = len(powers)
        for name, value in given:
            power = _power(value, powers)
            if power > 0 or (power < 0 and _is_inverse(value)):
                powers.setdefault(name, power)
    return powers


def _given(nodes: Collection[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are given: by assignments, as arguments, and of functions what they return."""
    parameters = {each.name: _parameters(each) for each in nodes if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _each(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            yield from _each(node.target, node.value)
        elif isinstance(node, ast.FunctionDef):
            returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
            yield from ((node.name, value) for value in returned if value is not None)
        elif isinstance(node, ast.Call):
            yield from ((each.arg, each.value) for each in node.keywords if each.arg)
            yield from zip(parameters.get(_name(node.func) or "", ()), node.args, strict=False)
            if _name(node.func) == "all_reduce" and node.args and _adds_up(node) and (name := _name(node.args[0])):
                yield name, ast.Name("world_size")  # a sum over the processes


def _each(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, of in zip(target.elts, value.elts, strict=True):
            yield from _each(one, of)
    elif (name := _name(target)) is not None:
        yield name, value


def _parameters(of: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """Names of the parameters that a call gives by their places."""
    if isinstance(of, ast.FunctionDef):
        names = [each.arg for each in (*of.args.posonlyargs, *of.args.args)]
        return names[1:] if names[:1] in (["self"], ["cls"]) else names
    makes = next((each for each in of.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if makes is not None:
        return _parameters(makes)
    return [name for each in of.body if isinstance(each, ast.AnnAssign) and (name := _name(each.target))]


def _adds_up(call: ast.Call) -> bool:
    by = [each.value for each in call.keywords if each.arg == "op"] or call.args[1:2]
    return not by or _name(by[0]) == "SUM"


def _power(node: ast.expr, powers: Powers) -> int:
    """How often the number of processes is a factor of an expression: below 0 where it is divided by it."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = _name(node) or ""
        return powers.get(name, int(WORLD.search(name) is not None))
    if isinstance(node, ast.Constant):
        return int(isinstance(node.value, str) and WORLD.search(node.value) is not None)
    if isinstance(node, ast.BinOp):
        left, right = _power(node.left, powers), _power(node.right, powers)
        signs = {ast.Mult: 1, ast.Div: -1, ast.FloorDiv: -1}
        return left + signs[type(node.op)] * right if type(node.op) in signs else 0
    if isinstance(node, ast.Call):
        name = _name(node.func) or ""
        if name not in KEEPING:
            return powers.get(name, int(WORLD.search(name) is not None))
        of = [node.func.value] if isinstance(node.func, ast.Attribute) and name in ("item", "size") else node.args
        return next((power for each in of if (power := _power(each, powers))), 0)
    parts: list[ast.expr] = []
    if isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.Subscript):
        parts = [node.slice]
    elif isinstance(node, ast.NamedExpr):
        parts = [node.value]
    return next((power for each in parts if (power := _power(each, powers))), 0)


def _is_inverse(value: ast.expr) -> bool:
    """Whether a number is divided, and not a loss, whose name then holds something else than before."""
    return isinstance(value, ast.BinOp) and isinstance(value.left, ast.Constant)


def _divisions(tree: ast.AST, powers: Powers) -> Iterator[ast.expr | ast.stmt]:
    """What divides by the number of processes, or multiplies by its inverse; nothing within a divisor."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        divisors: list[ast.expr] = []
        factors: list[ast.expr] = []
        if isinstance(node, ast.BinOp | ast.AugAssign):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
            divisors = sides[1:] if isinstance(node.op, ast.Div) else []
            factors = sides if isinstance(node.op, ast.Mult) else []
        elif isinstance(node, ast.Call):
            divisors = node.args[-1:] if _name(node.func) in DIVIDING else []
            factors = node.args if _name(node.func) in MULTIPLYING else []
        waiting += (each for each in ast.iter_child_nodes(node) if each not in divisors)
        if any(_power(each, powers) > 0 for each in divisors) or any(_power(each, powers) < 0 for each in factors):
            assert isinstance(node, ast.expr | ast.stmt)
            yield node


def _is_torchs(node: ast.AST) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and _name(func.value) == "torch"


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
