"""Code and output are told apart in the three forms in which documents have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.documented_run.documents.blocks import LOST_INDENTATION, Block, blocks_of, with_indentation

MARKDOWN = """\
# A chapter

Some words.

```python
import torch

torch.ones(2)
```
    tensor([1., 1.])

```python
total = sum([1, 2])
total

3
```
```python
{"a": 1}
```
```python
for row in range(2):
    print(row)
-----------------
0
1
```
```
accelerate launch train.py
```
```python
+ from accelerate import Accelerator
  model = 1
```
"""

NOTEBOOK = """\
Words before.

In [None]:
import numpy as np
#带注释 of the cell
np.argmax([0, 1])

以下是说明文字

In [None]:
values = [1,
          2]
values

[1, 2]

#### A heading, and text
not code at all

In [3]:
len(values)
"""

NUMBERED = """\
Words.

1
2
3
4
def double(x):
return 2 * x


and

1
2
values = [double(1)]
values
1
[2]

More words.
"""


def blocks(text: str, folder: Path, name: str = "000_abc.md") -> list[Block]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return blocks_of(path)


def test_fences(tmp_path: Path) -> None:
    found = blocks(MARKDOWN, tmp_path)
    assert [(each.line, each.printed, each.why_not) for each in found] == [
        (6, "tensor([1., 1.])", None),
        (13, "3", None),
        (19, '{"a": 1}', "an output without its code"),
        (22, "0\n1", None),
        (29, "", "a command of the shell"),
        (32, "", "a list of changes"),
    ]
    assert found[0].code == "import torch\n\ntorch.ones(2)"
    assert [each.number for each in found] == [1, 2, 3, 4, 5, 6]
    assert {each.document for each in found} == {"000"}


def test_an_output_set_apart_is_that_of_the_block_before(tmp_path: Path) -> None:
    (found,) = blocks("```python\nx = [1]\nx\n```\n```python\n[1]\n```\n", tmp_path)
    assert (found.code, found.printed) == ("x = [1]\nx", "[1]")


def test_cells_of_a_notebook(tmp_path: Path) -> None:
    first, second, third = blocks(NOTEBOOK, tmp_path)
    assert "argmax" in first.code
    assert "说明" not in first.code
    assert (second.code, second.printed) == ("values = [1,\n          2]\nvalues", "[1, 2]")
    assert (third.code, third.line) == ("len(values)", 21)


def test_numbered_listings(tmp_path: Path) -> None:
    function, values = blocks(NUMBERED, tmp_path)
    assert function.why_not == LOST_INDENTATION
    assert (values.code, values.printed) == ("values = [double(1)]\nvalues", "[2]")


def test_indentation_comes_from_another_copy(tmp_path: Path) -> None:
    whole = blocks("```python\ndef double(x):\n    return 2 * x  # twice\n```\n", tmp_path, "001.md")
    lost, _ = with_indentation([blocks(NUMBERED, tmp_path), whole])
    assert lost[0].code == whole[0].code
    assert lost[0].why_not is None


def test_a_copy_that_differs_in_more_gives_none(tmp_path: Path) -> None:
    other = blocks("```python\ndef double(x):\n    return 3 * x\n```\n", tmp_path, "001.md")
    lost, _ = with_indentation([blocks(NUMBERED, tmp_path), other])
    assert lost[0].why_not == LOST_INDENTATION


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("device\ndevice(type='cpu')", "device(type='cpu')"),
        ("print(a.shape)\n(408, 2) (408,)", "(408, 2) (408,)"),
        ("raw\n\nDatasetDict({\n  train: 1\n  test: 2\n})", "DatasetDict({\n  train: 1\n  test: 2\n})"),
        ("[len(x) for x in y]\n\n[50, 59]", "[50, 59]"),
        ("{k: v for k, v in y}\n\n{'a': 1}", "{'a': 1}"),
    ],
)
def test_outputs_below_their_code(code: str, printed: str, tmp_path: Path) -> None:
    (found,) = blocks(f"```python\n{code}\n```\n", tmp_path)
    assert found.printed == printed
    assert found.code == code[: code.index(printed)].rstrip("\n")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("```py", "```"),
        ('```python title="train.py"', "```"),
        ("```{python}", "```"),
        ("~~~python", "~~~"),
        ("````python", "````"),
        ("\ufeff```python", "```"),
    ],
)
def test_fences_as_they_are_written(opening: str, closing: str, tmp_path: Path) -> None:
    (found,) = blocks(f"{opening}\nf(1)\n{closing}\nprose\n", tmp_path)
    assert (found.code, found.why_not) == ("f(1)", None)


def test_prompts(tmp_path: Path) -> None:
    first, second = blocks("```python\n>>> x = f(\n...     1)\n>>> x\n[1]\n```\n", tmp_path)
    assert (first.code, first.printed) == ("x = f(\n    1)", "")
    assert (second.code, second.printed) == ("x", "[1]")


def test_other_languages_are_left_alone(tmp_path: Path) -> None:
    text = "```bash\nls\n```\n```yaml\nlr: 5e-5\n```\n```c++\nint a;\n```\n```json\n[1]\n```\n```python\nf(1)\n```\n"
    assert [each.code for each in blocks(text, tmp_path)] == ["f(1)"]


def test_an_output_in_a_fence_of_its_own(tmp_path: Path) -> None:
    (found,) = blocks("```python\nf(1)\n```\n```python out\n[1]\n```\n", tmp_path)
    assert (found.code, found.printed) == ("f(1)", "[1]")


def test_a_fence_in_a_list_keeps_its_indentation(tmp_path: Path) -> None:
    (found,) = blocks("- a point\n\n  ```python\n  for x in y:\n      f(x)\n  ```\n", tmp_path)
    assert found.code == "for x in y:\n    f(x)"


@pytest.mark.parametrize(
    "code",
    ["x = f()\nx.shape, x.dtype", "model\nmodel.eval()", '"""What it does."""\nf(1)', "...\nf(1)", "f(x)\n(a, b)"],
)
def test_code_that_is_no_output(code: str, tmp_path: Path) -> None:
    (found,) = blocks(f"```python\n{code}\n```\n", tmp_path)
    assert (found.code, found.printed) == (code, "")


def test_code_behind_what_is_no_python_is_run_too(tmp_path: Path) -> None:
    code = "f(\n   a=5 b=6,\n)\nx = 1"
    tagged, untagged = blocks(f"```python\n{code}\n```\n```\n{code}\n```\n", tmp_path)
    assert (tagged.code, tagged.printed, tagged.why_not) == (code, "", None)
    assert untagged.why_not == "not Python"


def test_code_after_an_output_is_a_block_of_its_own(tmp_path: Path) -> None:
    first, second = blocks("```python\nx\n[1]\nf(x)\n[2]\n```\n", tmp_path)
    assert [(each.code, each.printed) for each in (first, second)] == [("x", "[1]"), ("f(x)", "[2]")]


def test_what_names_a_block(tmp_path: Path) -> None:
    code = "from torch.optim import AdamW\nimport torch\n\noptimizer = AdamW(model.parameters())\noptimizer.step()"
    (found,) = blocks(f"```python\n{code}\n```\n", tmp_path)
    assert found.label == "torch.optim.AdamW, torch, AdamW()"
    assert found.assigns == {"optimizer"}
    (other,) = blocks(f"```python\n# {code[:4]}\n{code}  # a comment\n```\n", tmp_path)
    assert other.key == found.key


@pytest.mark.parametrize(
    ("code", "why_not"),
    [
        ("f(\n    a=1,\n    -b=2,\n    +b=3,\n)", "a list of changes"),
        ("f(\n    -1,\n    +2,\n)", None),
        ("f(\n    -a=1 b\n    c d\n)", None),
    ],
)
def test_a_list_of_changes_within_python(code: str, why_not: str | None, tmp_path: Path) -> None:
    (found,) = blocks(f"```python\n{code}\n```\n", tmp_path)
    assert found.why_not == why_not
