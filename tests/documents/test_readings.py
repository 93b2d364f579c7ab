"""What a block relies on, and which blocks are copies of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.documented_run.documents.blocks import Block, blocks_of
from harness.documented_run.documents.readings import readings_of, steps_of


def blocks(folder: Path, *codes: str, name: str = "a.md") -> list[Block]:
    path = folder / name
    path.write_text("".join(f"```py\n{code}\n```\n" for code in codes))
    return blocks_of(path)


@pytest.mark.parametrize(
    ("codes", "relies_on"),
    [
        (["x = 1", "y = 2", "x"], (0,)),
        (["x = 1", "y = x", "y"], (0, 1)),
        (["x = [1]", "y = x", "x.append(2)", "y"], (0, 1, 2)),
        (["x = 1", "def f():\n    return x", "x = 2", "f()"], (0, 1, 2)),
        (["import a", "x = a.b()", "a.c()"], (0,)),
        (["import a\nz = 1", "y = a.b()", "z = 2", "y"], (0, 1)),
        (["x = 1", "[x for x in range(3)]", "def f(x):\n    return x"], ()),
        (["x = 1", "def f():\n    global x\n    x = 2", "f()", "x"], (0, 1, 2)),
        (["x = 1", "print(len([1]))"], ()),
        (["len = 1", "len"], (0,)),
        (["import a", "a = a.b", "a"], (0, 1)),
    ],
)
def test_what_a_block_relies_on(codes: list[str], relies_on: tuple[int, ...], tmp_path: Path) -> None:
    assert steps_of(blocks(tmp_path, *codes))[-1].relies_on == relies_on


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (["x = 1  # one", "x"], ["x = 1  # eins", "x"], True),
        (["x = 1", "x"], ["x = 2", "x"], False),
        (["y = 1", "x = 1", "x"], ["x = 1", "x"], True),
        (["x = 1", "x.a()", "x"], ["x = 1", "x"], False),
        (["x = 1", "!ls", "x"], ["x = 1", "x"], True),
        (["def f():\n    return x", "f()"], ["x = 1", "def f():\n    return x", "f()"], False),
        (["x", "x = 1"], ["x", "x = 2"], None),
        (["x = x + 1", "x = 1"], ["x = x + 1", "x = 2"], None),
        (["def f():\n    return x", "x = 1"], ["def f():\n    return x", "x = 2"], None),
        (["x = 1"], ["x = 1", "x = 2", "y = x"], None),
        (["import a", "a.b"], ["from c import a", "a.b"], False),
        (["# pytest-decorator: a.b\nx"], ["x"], False),
    ],
)
def test_which_blocks_are_copies(one: list[str], other: list[str], alike: bool | None, tmp_path: Path) -> None:
    first, second = (steps_of(blocks(tmp_path, *codes)) for codes in (one, other))
    if alike is None:  # a name that is missing is taken from further down
        assert (first[0].identity == second[0].identity) == (one == ["x = 1"])
    else:
        assert (first[-1].identity == second[-1].identity) == alike


def test_readings(tmp_path: Path) -> None:
    path = tmp_path / "a.mdx"
    path.write_text(
        "```py\na\n```\n{#if fw === 'pt'}\n```py\nb\n```\n{:else}\n```py\nc\n```\n{/if}\n"
        "```py runnable:x\nd\n```\n```py\ne\n```\n```py runnable:x:2\nf\n```\n"
    )
    assert ["".join(each.code for each in reading) for reading in readings_of(blocks_of(path))] == [
        "df",
        "abdef",
        "acdef",
    ]
