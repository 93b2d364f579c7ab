"""A replacement is written where its block stands, and every other byte of the document stays."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.documented_run.documents import notebooks
from harness.documented_run.documents.blocks import blocks_of
from harness.documented_run.documents.rewrite import Fix, Rewritten, rewritten
from harness.files import diff_lines
from tests.documents.test_forms import cell, notebook

NEW = "from b import y\nfrom a import z"


def fixed(path: Path, *numbers: int, old: str = "from a import y, z", new: str = NEW) -> Rewritten:
    """The document with an import replaced in the blocks of these numbers."""
    found = blocks_of(path)
    return rewritten(path, [Fix(found[n - 1], found[n - 1].code.replace(old, new)) for n in numbers])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "a\n```py\nfrom a import y, z\nx = 1  \n```\nb",
            "a\n```py\nfrom b import y\nfrom a import z\nx = 1  \n```\nb",
        ),
        (
            "- a\n\n  ```py\n  if 1:\n\n      pass\n  from a import y, z\n  ```\n",
            "- a\n\n  ```py\n  if 1:\n\n      pass\n  from b import y\n  from a import z\n  ```\n",
        ),
        (
            "```py\r\nfrom a import y, z\r\nx = 1\r\n```\r\n",
            "```py\r\nfrom b import y\r\nfrom a import z\r\nx = 1\r\n```\r\n",
        ),
        (
            "```py\n>>> from a import y, z\n>>> x = f(\n...     1)\n[1]\n```\n",
            "```py\n>>> from b import y\n>>> from a import z\n>>> x = f(\n...     1)\n[1]\n```\n",
        ),
        ("\ufeff```py\nfrom a import y, z\n```\n", "\ufeff```py\nfrom b import y\nfrom a import z\n```\n"),
        (
            "```py\nfrom a import y, z\nx\n\n[1]\n```\ntext: from a import y, z\n",
            "```py\nfrom b import y\nfrom a import z\nx\n\n[1]\n```\ntext: from a import y, z\n",
        ),
        ("```py\nfrom a import y, z\n", "```py\nfrom b import y\nfrom a import z\n"),
        ("```py\nfrom a import y, z", "```py\nfrom b import y\nfrom a import z"),
    ],
    ids=["fence", "in a list", "CRLF", "prompts", "byte order mark", "with output", "not closed", "no last newline"],
)
def test_markdown(before: str, after: str, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(before.encode())
    changed = fixed(path, 1)
    assert (changed.after, changed.left) == (after, [])
    assert path.read_bytes() == before.encode()  # until somebody writes it


def test_only_the_block_that_was_tried(tmp_path: Path) -> None:
    path, fence = tmp_path / "a.md", "```py\nfrom a import y, z\n```\n"
    path.write_text(fence * 3)
    assert fixed(path, 2).after == fence + f"```py\n{NEW}\n```\n" + fence


def test_code_that_is_not_there_line_by_line_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("```py\nfrom a import y, z\n```\n")
    (block,) = blocks_of(path)
    path.write_text("A line more.\n\n\n\n```py\nfrom a import y, z\n```\n")
    changed = rewritten(path, [Fix(block, NEW)])
    assert changed.before == changed.after
    assert changed.left == [block]
    path.write_text("```py\nz = from a import y, z\n```\n")
    assert rewritten(path, [Fix(block, NEW)]).left == [block]


def test_code_that_stands_there_twice_is_left_unless_both_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("```py\n>>> from a import y, z\n>>> y\n1\n>>> from a import y, z\n```\n")
    first, _, again = blocks_of(path)
    assert rewritten(path, [Fix(again, NEW)]).left == [again]
    both = rewritten(path, [Fix(first, NEW), Fix(again, NEW)])
    assert both.after.count("from b import y\n>>> from a import z") == 2
    assert both.left == []


def test_a_listing_keeps_as_many_lines_as_it_has_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\nfrom a import y, z\nx = 1\n")
    (block,) = blocks_of(path)
    assert fixed(path, 1).left == [block]
    assert fixed(path, 1, old="a import y, z", new="b import y").after == "1\n2\nfrom b import y\nx = 1\n"


LAYOUTS: list[dict[str, Any]] = [
    {"indent": 1, "ensure_ascii": False},
    {"indent": 4, "sort_keys": True},
    {"separators": (",", ":")},
    {"indent": "\t", "separators": (" , ", " : ")},
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("source", ["# ключ\nfrom a import y, z\nx = '<'", ["# ключ\n", "from a import y, z\n", "x"]])
def test_notebooks(layout: dict[str, Any], end: str, source: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    content = json.loads(notebook(cell("é", kind="markdown"), cell("x"), cell(source), cell("from a import y, z")))
    text = (json.dumps(content, **layout) + end).replace("<", "\\u003c")
    path.write_bytes(text.encode())
    line = '"from a import y, z\\n"'
    if isinstance(source, list):
        comma = text[text.index(line) + len(line) : text.index('"x"', text.index(line))]
        wanted = text.replace(line, f'"from b import y\\n"{comma}"from a import z\\n"')
    else:
        old = json.dumps(source, ensure_ascii=text.isascii())
        wanted = text.replace(old.replace("<", "\\u003c"), old.replace("a import y, z", "b import y\\nfrom a import z"))
    assert wanted != text
    assert fixed(path, 2).after == wanted


def test_a_cell_of_one_line_gets_two(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(cell(["from a import y, z"])))
    assert '"source": [\n    "from b import y\\n",\n    "from a import z"\n   ]' in fixed(path, 1).after


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(
    sources=st.lists(st.text() | st.lists(st.text(min_size=1)), min_size=1, max_size=4),
    new=st.text(min_size=1),
    metadata=json_values,
    layout=st.sampled_from(LAYOUTS),
    data=st.data(),
)
def test_every_other_byte_of_a_notebook_stays(
    sources: list[Any], new: str, metadata: Any, layout: dict[str, Any], data: st.DataObject
) -> None:
    filled = [each or "x" for each in sources]
    cells = [cell(each) | {"metadata": metadata} for each in filled]
    text = json.dumps(json.loads(notebook(*cells, metadata={"source": metadata})), **layout)
    number = data.draw(st.integers(1, len(filled)))
    changed = notebooks.with_sources(text, {number: new})
    assert notebooks.with_sources(text, {}) == text
    content = json.loads(changed)
    source = content["cells"][number - 1].pop("source")
    assert "".join(source) == new
    before = json.loads(text)
    before["cells"][number - 1].pop("source")
    assert content == before


def test_a_patch_applies(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_bytes(b"words\x0c words\n```py\nfrom a import y, z\n```\nend")
    (folder / "b.ipynb").write_text(notebook(cell("from a import y, z")))
    patch, after = "", {}
    for name in ("a.md", "b.ipynb"):
        changed = fixed(folder / name, 1)
        after[name] = changed.after
        patch += "".join(diff_lines(changed.before, changed.after, f"docs/{name}"))
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    assert {name: (folder / name).read_text() for name in after} == after


def test_indentation_of_another_copy_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\ndef f():\nfrom a import y, z\n")
    (block,) = blocks_of(path)
    whole = replace(block, code="def f():\n    from a import y, z", why_not=None)
    assert rewritten(path, [Fix(whole, whole.code.replace("y, z", "z"))]).left == [whole]
