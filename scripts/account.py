"""What a run's account says: entities, facts and observations, with their fields.

``python -m scripts.record_pages account`` prints it. Look there before you add a fact: what you need may be a field of
one.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import pairwise

from harness import catalogue
from harness.watch.bus import RECOGNISERS
from harness.watch.check import Check
from harness.watch.events import Fact

INTRODUCTION = """# What the account of a run says

`harness describe`, the outline of `harness check`, the journals and the checks read what is listed here; what one
check alone looks at is in its own class. An **entity** (`harness/watch/run`) is always the same thing, whoever asks. A
**fact** (`harness/watch/facts`) is asked for by several checks, or by a check and a page. An **observation**
(`harness/watch/checks/FAMILY/observations`) is what a family needs that is not in its checks' classes yet. Each is made
by a recogniser in the same file, where somebody asks for it. [contributing.md](contributing.md) says how to add one."""

ORDER = ("harness.watch.run.", "harness.watch.facts.")


def text() -> str:
    """The page that lists them."""
    judges = _judges()
    by_part: dict[str, list[type[Fact]]] = defaultdict(list)
    for kind in sorted(_told(), key=lambda each: (each.__module__, _line(each))):
        by_part[_part(kind.__module__)].append(kind)
    lines = [INTRODUCTION]
    for part in sorted(by_part, key=lambda name: (name != "Entities", name != "Facts", name)):
        lines += [f"## {part}", *(_entry(kind, judges[kind]) for kind in by_part[part])]
    return "\n\n".join(lines) + "\n"


def _told() -> Iterator[type[Fact]]:
    """The facts that some recogniser makes."""
    catalogue.checks()
    yield from (kind for kind in RECOGNISERS if issubclass(kind, Fact) and kind.__module__.startswith("harness."))


def _part(module: str) -> str:
    if module.startswith(ORDER):
        return "Entities" if module.startswith(ORDER[0]) else "Facts"
    return f"Observations of {module.split('.')[3]}" if ".observations." in module else "Facts"


def _judges() -> dict[type, list[str]]:
    found = defaultdict(list)
    for name, check in catalogue.checks().items():
        assert issubclass(check, Check)
        for kinds in check.told_of.values():
            for kind in kinds:
                found[kind].append(name)
    return found


def _entry(kind: type[Fact], judges: Iterable[str]) -> str:
    """One fact: what it says, its fields, and which checks judge it."""
    words = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
    about = _words_of_fields(kind)
    mine = [each.name for each in fields(kind) if each.name in about]
    lines = [
        f"- **`{kind.__name__}`** (`{kind.__module__.removeprefix('harness.watch.').replace('.', '/')}.py`): {words}"
    ]
    lines += [f"    - `{name}`{': ' + about[name] if about[name] else ''}" for name in mine]
    judged = ", ".join(f"`{name}`" for name in sorted(set(judges)))
    return "\n".join([*lines, *([f"    - judged by {judged}"] if judged else [])])


def _words_of_fields(kind: type) -> dict[str, str]:
    """The fields that a class itself declares, each with the string behind it."""
    (declared,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for statement, behind in pairwise([*declared.body, ast.Pass()]):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            is_words = isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant)
            found[statement.target.id] = " ".join(str(behind.value.value).split()) if is_words else ""  # type: ignore[attr-defined]
    return found


def _line(kind: type) -> int:
    return inspect.getsourcelines(sys.modules[kind.__module__].__dict__[kind.__name__])[1]
