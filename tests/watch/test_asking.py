"""Loops over a DataLoader, as they are written: which of them can go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.watch.asking import leaves_after_one


@pytest.mark.parametrize(
    ("body", "leaves"),
    [
        ("score(batch)\nreturn total", True),
        ("score(batch)\nbreak", True),
        ("with no_grad():\n    score(batch)\n    return total", True),
        ("with no_grad():\n    score(batch)\nbreak", True),
        ("score(batch)", False),
        ("score(batch)\nif number == most:\n    break", False),
        ("if number == most:\n    break\nscore(batch)", False),
        ("if batch is None:\n    continue\nscore(batch)\nbreak", False),
        ("for row in batch:\n    score(row)\n    break", False),
        ("break", False),  # it takes a batch out
        ("with no_grad():\n    break", False),
    ],
)
def test_a_loop_that_always_leaves_is_told_from_one_with_a_limit(body: str, leaves: bool, tmp_path: Path) -> None:
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    script = tmp_path / "script.py"
    script.write_text(
        f"def evaluated(loader):\n    for number, batch in enumerate(\n        loader\n    ):\n{indented}\n"
    )
    assert leaves_after_one(f"{script}:2") is leaves_after_one(f"{script}:3") is leaves
    assert not leaves_after_one(f"{script}:1")


@pytest.mark.parametrize("where", [None, "", "gone.py:3", "Cell In[1], line 2"])
def test_what_cannot_be_read_is_not_judged(where: str | None) -> None:
    assert not leaves_after_one(where)


def test_what_is_no_python_is_not_judged(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("for batch in loader:\n    score(batch\n    break\n")
    assert not leaves_after_one(f"{script}:1")
