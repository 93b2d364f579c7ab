"""Numbers of classes that follow the order of a set, beside a model that is saved without them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from torch import nn

from harness.findings import few
from harness.watch.bounded import FirstByKey, Latest
from harness.watch.check import Check, Found, Held, NothingToJudge, Verdict
from harness.watch.events import End, FileRead, ModelSaved, Reported, Save

MOST_CALLERS, MOST_VALUES, MOST_DEEP = 8, 4096, 4
"""The script's functions, the values, and the containers within each other that are looked through at a save."""

WRITES = re.compile(r"dump|save|write|to_json|to_csv|to_pickle")
"""What functions are called that write what they are given to a file."""


class NumberedBySet(Check):
    """The classes are numbered in the order of a set, and the model is saved without their numbers.

    ## Why is this a bug?
    The order of strings in a set is another in each process, unless PYTHONHASHSEED is set. The next process that loads
    the model numbers the classes anew: it gives the right answers other names, and its accuracy is that of chance.

    ## What to do
    Number the classes in a fixed order, `{name: i for i, name in enumerate(sorted(set(names)))}`, and save that map
    with the model.

    ## When it is right
    Nothing is reported if the map is saved or printed, if the model's config has it, or if this process itself loads
    what it has saved. Ignore this warning if nothing else ever does.

    ## References
    - https://docs.python.org/3/reference/datamodel.html#object.__hash__
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "model that is saved by a script that numbers strings"

    def begin(self) -> None:
        self._is_random = os.environ.get("PYTHONHASHSEED", "random") == "random"  # before a script sets it, too late
        self._named = FirstByKey[tuple[str, ...], str]()
        """Strings that are in the order of their numbers, to what the script calls them."""
        self._kept = set[tuple[str, ...]]()
        """Those that are saved, printed or in a config."""
        self._saved = Latest[str]()
        self._loaded = False

    def on_save(self, event: Save) -> None:
        if self._is_random:
            self._look(event.what, event.path)

    def on_model_saved(self, event: ModelSaved) -> None:
        if self._is_random:
            self._look(getattr(getattr(event.model, "config", None), "__dict__", {}), event.folder)

    def _look(self, saved: Any, path: str | None) -> None:
        if (file := os.path.abspath(path or "")) not in self._saved:
            self._saved.append(file)
        for variables in self.monitor.locator.variables(MOST_CALLERS):
            for name, value in variables.items():
                fields = getattr(value, "__dict__", {})  # nothing of it is computed
                for key, each in [(name, value), *(fields.items() if type(fields) is dict else ())]:
                    if (strings := _numbered(each)) and self._named.takes(strings):
                        self._named.setdefault(strings, key)
        texts = {each for each in _within(saved) if isinstance(each, str)}
        self._kept |= {strings for strings in self._named if texts.issuperset(strings)}

    def on_reported(self, event: Reported) -> None:
        self._kept |= {strings for strings in self._named if all(each in event.text for each in strings)}

    def on_file_read(self, event: FileRead) -> None:
        self._loaded = self._loaded or (event.path is not None and os.path.abspath(event.path) in self._saved)

    def on_end(self, event: End) -> None:
        asked = {each for each in self._named if each not in self._kept and _are_in_order_of_a_set(each)}
        code = list(self.monitor.locator.code()) if asked else []  # of a large project it takes seconds
        places: dict[str, str] = {}
        for file, nodes in code:
            places |= {name: f"{file}{line}" for name, line in _numbered_sets(nodes).items() if name not in places}
        for strings, name in self._named.items():
            where = places.get(name) if strings in asked else None
            if where is not None and any(_writes(node, name) for _, nodes in code for node in nodes):
                where = None
            self.says(self.judge(strings, from_set=where is not None, loaded=self._loaded), where)

    @staticmethod
    def judge(strings: Collection[str], *, from_set: bool, loaded: bool) -> Verdict:
        """Strings that a script numbers, whether it does so in the order of a set and keeps it to itself, and whether
        it loads itself what it has saved."""
        if not from_set:
            return Held(f"{len(strings)} strings are numbered in an order that other processes have, too, or is saved")
        if loaded:
            return NothingToJudge("the process that numbers the classes is the one that loads the model")
        return Found(
            expected="numbers of classes that are saved, or the same in each process",
            observed=f"{few(list(strings), 4)} are numbered in the order of a set; the model is saved without it",
        )


def _numbered(value: Any) -> tuple[str, ...]:
    """The strings that a mapping numbers from 0, or that a list has once each, in their order."""
    if type(value) not in (dict, list, tuple) or not 1 < len(value) <= MOST_VALUES:
        return ()
    strings = all(type(each) is str for each in value) and len({*value}) == len(value)
    numbers = value.values() if type(value) is dict else range(len(value))
    in_order = all(type(each) is int and each == number for number, each in enumerate(numbers))
    return tuple(value) if strings and in_order else ()


def _within(value: Any, deep: int = MOST_DEEP) -> Iterator[Any]:
    """What a file has, of containers and of models what is in them."""
    value = vars(value) if isinstance(value, nn.Module) else value
    if isinstance(value, (dict, list, tuple)) and deep:
        # What a class of the script's own makes of its entries is not asked.
        inner = [*dict.keys(value), *dict.values(value)] if isinstance(value, dict) else value
        for each in inner[:MOST_VALUES]:
            yield from _within(each, deep - 1)
    else:
        yield value


def _are_in_order_of_a_set(strings: tuple[str, ...]) -> bool:
    """Whether a set gives them in this order; where two have one place, the first to come has it."""
    return any(tuple(each) == strings for each in ({*strings}, {*reversed(strings)}, set(frozenset(strings))))


def _numbered_sets(nodes: Sequence[ast.AST]) -> dict[str, int]:
    """Names of what comes of the order of a set, and of functions that return it, each to the line that takes it."""
    sets = {name for node in nodes if isinstance(node, ast.Assign) and _is_set(node.value) for name in _targets(node)}
    in_order = {
        id(each)
        for node in nodes
        if isinstance(node, ast.Call) and _name(node.func) == "sorted"
        for each in ast.walk(node)
    }
    taken = {
        id(node): node.lineno
        for node in nodes
        if isinstance(node, ast.Call) and _name(node.func) in ("enumerate", "list", "tuple", "zip")
        if id(node) not in in_order and any(_is_set(each, sets) for each in node.args)
    }
    named: dict[str, int] = {}
    for _ in range(3):  # a function that returns it, what that gave, and what came of that
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                given, names = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)], [node.name]
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                given, names = [node.value], _targets(node)
            else:
                continue
            inner = [each for value in given if value is not None for each in ast.walk(value)]
            lines = [taken.get(id(each)) or named.get(_name(each)) for each in inner]
            if line := next(filter(None, lines), None):
                named |= {name: line for name in names if name not in named}
    return named


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """The names that are assigned to, also those of attributes."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [name for target in targets for each in ast.walk(target) if (name := _name(each))]


def _is_set(node: ast.AST, sets: Collection[str] = ()) -> bool:
    if isinstance(node, ast.Call) and _name(node.func) in ("list", "tuple") and node.args:
        return _is_set(node.args[0], sets)
    made = isinstance(node, ast.Call) and _name(node.func) in ("set", "frozenset")
    return made or isinstance(node, ast.SetComp) or (isinstance(node, ast.Name) and node.id in sets)


def _writes(node: ast.AST, name: str) -> bool:
    """Whether it hands what has a name, or each part of it, to a function that writes files, or to a config."""
    if isinstance(node, ast.keyword):
        return node.arg in ("label2id", "id2label")
    if isinstance(node, ast.For):
        given: Iterable[ast.AST] = [node.iter]
        writes = any(_is_writer(each) for each in ast.walk(node))
    else:
        writes, given = _is_writer(node), node.args if isinstance(node, ast.Call) else ()
    return writes and any(_name(each) == name for part in given for each in ast.walk(part))


def _is_writer(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and WRITES.search(_name(node.func)) is not None


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
