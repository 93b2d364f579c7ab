"""Reads: the lines of the user's files that use a setting, or give it another value, by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from harness.vary.settings.find import ARGPARSE, Setting, dotted

SHOWN_BY = ("print", "format", "info", "debug", "warning", "write", "pprint")
"""Calls that show a value."""


def stores_of(setting: Setting, files: Mapping[str, bytes]) -> list[str]:
    """The lines on which an entry, or an attribute, of a setting's name is given another value than it has there."""
    found = []
    for file, tree in _trees(files):
        for node in ast.walk(tree):
            attribute = isinstance(node, ast.Attribute) and node.attr == setting.own_name and not _is_of_self(node)
            key = isinstance(node, ast.Subscript) and _is_word(node.slice, setting.own_name)
            if (attribute or key) and isinstance(getattr(node, "ctx", None), ast.Store):
                found.append((file, getattr(node, "lineno", 0)))
    return [place for file, line in sorted(set(found)) if (place := f"{file}:{line}") != setting.where]


def words_of(files: Mapping[str, bytes]) -> set[Any]:
    """The words in quotes in some files."""
    constants = (node for _, tree in _trees(files) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {node.value for node in constants if isinstance(node.value, str)}


def _defined(files: Mapping[str, bytes]) -> set[str]:
    """The functions and classes of the user's."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for _, tree in _trees(files) for node in ast.walk(tree) if isinstance(node, kinds)}


def _trees(files: Mapping[str, bytes]) -> Iterator[tuple[str, ast.Module]]:
    for file, data in files.items():
        with suppress(SyntaxError, ValueError):
            yield file, _parsed(data)


@cache
def _parsed(data: bytes) -> ast.Module:
    return ast.parse(data)  # each setting asks about each file


def reads_of(setting: Setting, files: Mapping[str, bytes], *, uses_alone: bool = False) -> list[str]:
    """The lines on which a setting's name is read: as a variable, an attribute, or a key; in order.

    A parameter is read in its own function alone, an option of argparse as an attribute. Lines that only pass the
    value on by its name, or print it, are left out where others do more, or where ``uses_alone`` are asked for.
    """
    if setting.kind == "argument" and setting.of not in _defined(files):
        return []
    if "#" in setting.of:
        files = {setting.file: files[setting.file]}
    reads: set[tuple[str, int]] = set()
    passed_on: set[tuple[str, int]] = set()
    handed_over = False
    for file, tree in _trees(files):
        idle = _passing_on(tree, setting.own_name)
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}  # random.shuffle(…)
        for node in ast.walk(tree):
            if _reads(node, setting) and id(node) not in called:
                handed_over |= setting.of != ARGPARSE or not _is_of_self(node)
                (passed_on if id(node) in idle else reads).add((file, getattr(node, "lineno", 0)))
    if not handed_over:  # self.shuffle is another thing's, where nobody reads args.shuffle
        return []
    return [f"{file}:{line}" for file, line in sorted(reads or (set() if uses_alone else passed_on))]


def _is_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _reads(node: ast.AST, setting: Setting) -> bool:
    name = setting.own_name
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        return setting.of != ARGPARSE and ("#" not in setting.of or setting.is_within(node.lineno))
    if "#" in setting.of:
        return False
    if isinstance(node, ast.Call):
        return dotted(node.func).endswith((".get", "getattr")) and any(_is_word(each, name) for each in node.args)
    attribute = isinstance(node, ast.Attribute) and node.attr == name
    key = isinstance(node, ast.Subscript) and _is_word(node.slice, name)
    return (attribute or key) and isinstance(getattr(node, "ctx", None), ast.Load)


def _passing_on(tree: ast.Module, name: str) -> set[int]:
    """The parts of a module in which a name is only passed on by itself, or printed."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if dotted(node.func).rpartition(".")[2] in SHOWN_BY:
                found |= {id(part) for part in ast.walk(node)}
            found |= {id(keyword.value) for keyword in node.keywords if keyword.arg == name}
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=False) if both else [(target, value)]  # type: ignore[attr-defined]
            found |= {id(own) for to, own in pairs if name in (getattr(to, "attr", None), getattr(to, "id", None))}
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            found |= {id(value) for key, value in pairs if key is not None and _is_word(key, name)}
    return found


def _is_word(node: ast.expr, word: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == word
