"""The forms in which documents are kept: MDX with a choice of frameworks, doc-builder's options, notebooks, folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.documented_run.documents.blocks import Block, blocks_of
from harness.documented_run.documents.collect import read_documents
from harness.errors import CannotTry

MDX = """\
<FrameworkSwitchCourse {fw} />

{#if fw === 'pt'}

```py
import torch
```
{:else}
```py
import tensorflow as tf
```
{/if}

```python out
shown for both
```

<frameworkcontent>
<pt>
```py
torch.ones(1)
```
</pt>
<tf>
```py:
tf.ones(1)
```
</tf>
</frameworkcontent>

```py
both = 1
```
"""

RUNNABLE = """\
```py runnable:quick
# pytest-decorator: transformers.testing_utils.slow, transformers.testing_utils.require_torch
x = 1
assert x == 1  # doc-builder: hide
```
```python runnable:quick:2
x + 1
```
```py runnable:Other:2
y = 1
```
```py runnable
z = 1
```
```py
plain = 1
```
"""


def blocks(text: str, folder: Path, name: str = "a.mdx") -> list[Block]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return blocks_of(path)


def cell(source: str | list[str], outputs: Sequence[dict[str, Any]] = (), kind: str = "code") -> dict[str, Any]:
    more = {"outputs": list(outputs), "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source} | more


def notebook(*cells: dict[str, Any], **more: Any) -> str:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 4} | more, indent=1)


def test_blocks_of_a_framework(tmp_path: Path) -> None:
    found = blocks(MDX, tmp_path)
    assert [(each.code, each.framework) for each in found] == [
        ("import torch", "pt"),
        ("import tensorflow as tf", "tf"),
        ("torch.ones(1)", "pt"),
        ("tf.ones(1)", "tf"),
        ("both = 1", None),
    ]


def test_blocks_that_doc_builder_runs(tmp_path: Path) -> None:
    found = blocks(RUNNABLE, tmp_path)
    assert [each.runnable for each in found] == ["quick", "quick", "Other:2", "line 13", None]
    assert found[0].decorators == ("transformers.testing_utils.slow", "transformers.testing_utils.require_torch")
    assert "assert x == 1" in found[0].python  # what is hidden from readers is run
    assert found[1].decorators == ()


@pytest.mark.parametrize("info", ["py", "python", "{.python .numberLines}", 'py title="a b"', "python hl_lines=1"])
def test_options_of_a_fence_do_not_hide_it(info: str, tmp_path: Path) -> None:
    assert [each.code for each in blocks(f"```{info}\nf(1)\n```\n", tmp_path)] == ["f(1)"]


def test_cells_with_their_outputs(tmp_path: Path) -> None:
    text = notebook(
        cell("# Words", kind="markdown"),
        cell(["x = [1,\n", "     2]\n", "x"], [{"output_type": "execute_result", "data": {"text/plain": ["[1, 2]"]}}]),
        cell(
            "print(1)\n2",
            [
                {"output_type": "stream", "name": "stdout", "text": "1\n"},
                {"output_type": "stream", "name": "stderr", "text": "a warning"},
                {"output_type": "execute_result", "data": {"text/plain": "2", "text/html": "<b>2</b>"}},
            ],
        ),
        cell("1 / 0", [{"output_type": "error", "ename": "ZeroDivisionError", "evalue": "", "traceback": []}]),
        cell(""),
        cell("f(x)"),
        cell("[3]"),
    )
    found = blocks(text, tmp_path, "a.ipynb")
    assert [(each.cell, each.code, each.printed, each.raises) for each in found] == [
        (2, "x = [1,\n     2]\nx", "[1, 2]", None),
        (3, "print(1)\n2", "1\n2", None),
        (4, "1 / 0", "", "ZeroDivisionError"),
        (6, "f(x)", "[3]", None),  # a cell that was exported from an output
    ]
    lines = text.splitlines()
    assert "x = [1," in lines[found[0].line - 1]
    assert "print(1)" in lines[found[1].line - 1]


@pytest.mark.parametrize(
    ("source", "python", "why_not"),
    [
        ("!pip install x\n# or\n!pip install y", None, "a command of the shell"),
        ("!pip install x\nimport os", "pass\nimport os", None),
        ("%%time\nf(1)", "pass\nf(1)", None),
        ("if x:\n    %cd y\n    f(1)", "if x:\n    pass\n    f(1)", None),
        ("x = (7\n% 4)", "x = (7\n% 4)", None),
        ("%%bash\nls", None, "a cell of %%bash"),
    ],
)
def test_lines_that_are_not_python(source: str, python: str | None, why_not: str | None, tmp_path: Path) -> None:
    (found,) = blocks(notebook(cell(source)), tmp_path, "a.ipynb")
    assert found.why_not == why_not
    assert python is None or found.python == python
    assert found.code == source


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"nbformat": 3, "worksheets": []}', "nbformat 4, found 3; jupyter nbconvert converts it"),
        ("[]", "found None"),
        ("{", "Expecting"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "cell 1 has no source"),
    ],
)
def test_what_is_no_notebook(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(CannotTry, match=says):
        read_documents(tmp_path)


def test_folders_within_folders(tmp_path: Path) -> None:
    for name in ("de/3.mdx", "de/3_tf.mdx", "de/4.md", "fr/3.mdx", ".git/a.md", "de/.ipynb_checkpoints/b.md", "x.rst"):
        blocks("```py\nf(1)\n```\n", tmp_path, name)
    (tmp_path / "de" / "5.ipynb").write_text(notebook(cell("f(1)")))
    found = read_documents(tmp_path)
    assert [(each.file, each.blocks[0].document) for each in found] == [
        ("de/3.mdx", "de/3.mdx"),
        ("de/3_tf.mdx", "de/3_tf.mdx"),
        ("de/4.md", "4"),
        ("de/5.ipynb", "5"),
        ("fr/3.mdx", "fr/3.mdx"),
    ]
    (one,) = read_documents(tmp_path / "de" / "5.ipynb")
    assert (one.file, one.path) == ("5.ipynb", tmp_path / "de" / "5.ipynb")


def test_what_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "a.rst").touch()
    with pytest.raises(
        CannotTry, match=r"no documents in .*a\.rst: expected files \*\.md, \*\.mdx, \*\.ipynb, \*\.txt"
    ):
        read_documents(tmp_path / "a.rst")
    with pytest.raises(CannotTry, match="absent not found"):
        read_documents(tmp_path / "absent")
    (tmp_path / "a.md").write_text("Words only.")
    with pytest.raises(CannotTry, match="no blocks of Python"):
        read_documents(tmp_path)
