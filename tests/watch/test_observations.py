"""What one check alone needs is in its file, what one family alone needs beside it; facts have several readers."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECKS = "harness.watch.checks."


def imports() -> Iterator[tuple[str, str]]:
    """Each module of the harness, with what it imports from."""
    for file in (ROOT / "harness").rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                yield module, node.module


def family_of(module: str) -> str | None:
    return module.removeprefix(CHECKS).partition(".")[0] if module.startswith(CHECKS) else None


def test_observations_are_of_one_family() -> None:
    others = [
        f"{module} imports {name}"
        for module, name in imports()
        if ".observations" in name and family_of(module) != family_of(name)
    ]
    assert others == [], "move what several families need to harness/watch/facts or harness/watch/run"


def test_facts_have_several_readers() -> None:
    readers: dict[str, set[str]] = defaultdict(set)
    for module, name in imports():
        readers[name].add(module)

    def asking(fact: str, known: frozenset[str] = frozenset()) -> set[str]:
        """The modules that ask for it, and for what stands on it."""
        found = set[str]()
        for reader in readers[fact] - known:
            if reader.startswith(("harness.watch.facts.", "harness.watch.run.")):
                found |= asking(reader, known | {fact})
            else:
                found.add(reader)
        return found

    facts = [f"harness.watch.facts.{file.stem}" for file in (ROOT / "harness/watch/facts").glob("*.py")]
    alone = {fact: found for fact in facts if len(found := asking(fact)) == 1 and "__init__" not in fact}
    assert alone == {}, "move each into the only file that asks for it"
