"""The corpus of ``harness check``: a folder for each check, with its examples and edits of training scripts.

``<family>/<id>/bad.py`` and ``good.py`` are the examples of the check's page, and ``# found`` marks the line that is to
be named; ``bad_….py`` have the bug in another way, for another place in which the check reports; ``right_….py`` are
further right scripts, in which nothing may be found. The first line of each may say what it needs
(``# needs peft>=0.10``);
``corpus.toml`` lists edits of the scripts in ``scripts/``:

- ``[[bug]]``: a silent bug that this check must find, and no other: ``name``, ``script``, ``case`` (where it was
  met), ``on`` (requirements of which one must be met for it to be one), ``also`` (checks that find what follows from
  the bug, so that their findings are below this one's);
- ``[[right]]``: a legitimate way to train, close to the bug, in which nothing may be found: ``warns`` are warnings that
  it may get, because what it does is right only if it is meant;
- ``[[unseen]]``: a bug that no check sees, and ``why``;

each with ``pretrained = true`` where it takes a model that learns the task within its few updates (all start from a
narrow one that has learnt nothing otherwise),

and ``[[….edit]]``: a passage ``old`` that occurs once in the script, and what takes its place. ``[example]`` says
how the examples are run, where that is not as ``python bad.py``: ``processes``, ``environment``; ``[example.bad]``,
``[example.good]`` and so on where they differ in that; ``also`` there as for a bug.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from harness.compat import evaluation_strategy, processing_class
from tests.versions import installed

FOLDER = Path(__file__).parent
MARK = "  # found"
"""At the end of a line of an example that is to be named."""
SCRIPTS = FOLDER / "scripts"

NEEDS = {"accelerated.py": ("accelerate>=0.16",)}
"""By script, the versions with which it is right: before, Accelerate's prepared schedule made a step for every
micro-batch (tests/faults/prepared_scheduler.py)."""


Kind = Literal["bug", "right", "unseen", "as it is", "bad", "good", "further"]


@dataclass(frozen=True)
class Case:
    """One script to watch, and what must be found in it."""

    kind: Kind
    name: str
    script: str
    check: str | None
    """The check in whose folder it is."""
    text: str
    case: str | None = None
    why: str | None = None
    warns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Checks whose findings are explained by that of this one."""
    on: tuple[str, ...] = ()
    processes: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    pretrained: bool = False
    """Whether it starts from the built-in checkpoint; the others do from a narrower one that has learnt nothing."""
    guards: bool = False
    """Whether it is watched at every change, as the two examples are."""
    marked: tuple[int, ...] = ()
    """Of an example, the lines that findings must name."""

    @property
    def needed(self) -> tuple[str, ...]:
        """Requirements of which one would have to be met for the script to show anything; empty where one is."""
        wanted = (NEEDS.get(self.script, ()), () if self.kind == "bug" else self.on)
        return next((each for each in wanted if not installed(*each)), ())

    @property
    def is_bug(self) -> bool:
        """Whether something must be found in it, on the installed versions."""
        return self.kind in ("bug", "bad", "further") and installed(*self.on)


def cases_of(folder: Path) -> Iterator[Case]:
    """The examples and edits of one check's folder."""
    check = f"{folder.parent.name}::{folder.name}"
    table = tomllib.loads((folder / "corpus.toml").read_text(encoding="utf-8"))
    example = table.pop("example", {})
    own = {stem: example.pop(stem) for stem in [*example] if isinstance(example[stem], dict) and stem != "environment"}
    for file in (folder / "bad.py", folder / "good.py", *sorted(folder.glob("bad_*.py"))):
        kind = file.stem if file.stem in ("bad", "good") else "further"
        if file.exists():
            about: dict[str, Any]
            text = file.read_text(encoding="utf-8")
            marked = tuple(n for n, line in enumerate(text.splitlines(), start=1) if line.endswith(MARK))
            about = {"on": needs_of(text), **example, **own.get(file.stem, {}), "marked": marked}
            about |= {"guards": kind != "further", "also": tuple(about.get("also", ()))}
            yield Case(cast("Kind", kind), file.name, file.name, check, text.replace(MARK, ""), **about)
    for file in sorted(folder.glob("right_*.py")):
        text = file.read_text(encoding="utf-8")
        yield Case("good", file.name, file.name, check, text, **{"on": needs_of(text), **own.get(file.stem, {})})
    for kind, entries in table.items():
        for entry in entries:
            about = {key: tuple(each) if isinstance(each, list) else each for key, each in entry.items()}
            edits = about.pop("edit", ())
            yield Case(cast("Kind", kind), check=check, text=edited(SCRIPTS / about["script"], edits), **about)


def needs_of(text: str) -> tuple[str, ...]:
    """What the first line of a script says that it needs beside the extra ``test``."""
    needs = re.match(r"# needs (\S+)\n", text)
    return (needs[1],) if needs else ()


@cache
def all_cases() -> list[Case]:
    """The scripts as they are, and every folder's."""
    names = sorted(script.name for script in SCRIPTS.glob("*.py"))
    scripts = [Case("as it is", name.removesuffix(".py"), name, None, edited(SCRIPTS / name)) for name in names]
    folders = sorted(file.parent for file in FOLDER.glob("*/*/corpus.toml"))
    return [*scripts, *(case for folder in folders for case in cases_of(folder))]


def edited(script: Path, edits: Iterable[dict[str, str]] = ()) -> str:
    """The script's text with the edits made one after another, for the installed transformers."""
    text = script.read_text(encoding="utf-8")
    for edit in edits:
        assert text.count(edit["old"]) == 1, f"{script.name}: {text.count(edit['old'])} times {edit['old']!r}"
        text = text.replace(edit["old"], edit["new"])
    for pattern, keyword in _installed_keywords():
        text = re.sub(pattern, rf"\1{keyword}=", text)
    return text


@cache
def _installed_keywords() -> list[tuple[str, str]]:
    named_anew = ((r"( )eval_strategy=", evaluation_strategy), (r"( )processing_class=", processing_class))
    dtype = "dtype" if installed("transformers>=4.56") else "torch_dtype"
    return [
        *((pattern, next(iter(keyword("")))) for pattern, keyword in named_anew),
        (r"(from_pretrained\(.*, )dtype=", dtype),
    ]
