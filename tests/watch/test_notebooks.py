"""``harness check NOTEBOOK.ipynb``: its cells run one after another, and findings name them as Jupyter does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CannotTry
from harness.watch.notebooks import cells_of
from harness.watch.running import readable_script
from harness.watch.script import check_script

SETUP = "%matplotlib inline\nimport torch\nfrom torch import nn\nfiles = !ls\ntorch.manual_seed(0)"
MODEL = "model = nn.Linear(8, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
LOOP = """%%time
for _ in range(8):
    !nvidia-smi
    loss = nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(2, (4,)))
    loss.backward()
    optimizer.step()
display("done")"""


def notebook(path: Path, *sources: str) -> Path:
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "source": "Text"}]
    cells += [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    return path


def test_a_finding_names_cell_and_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = check_script(str(notebook(tmp_path / "train.ipynb", SETUP, "%%bash\nls", MODEL, LOOP)))
    (finding,) = report.findings
    assert (finding.check, finding.where) == ("gradients::not-cleared", "Cell In[4], line 6")
    assert any("> 6 | " in line and "optimizer.step()" in line for line in finding.lines())
    (note,) = report.notes
    for skipped in ("%matplotlib inline (cell 1)", "files = !ls (cell 1)", "%%bash (cell 2)", "!nvidia-smi (cell 4)"):
        assert skipped in note
    assert capfd.readouterr().out == "done\n"


def test_a_comment_in_a_cell_ignores_a_check(tmp_path: Path) -> None:
    commented = LOOP.replace("optimizer.step()", "optimizer.step()  # harness: ignore[gradients::not-cleared]")
    report = check_script(str(notebook(tmp_path / "train.ipynb", SETUP, MODEL, commented)))
    assert (report.findings, report.ignored) == ([], ["gradients::not-cleared"])


def test_what_is_python_stays(tmp_path: Path) -> None:
    source = "x = 7 % 3\ny = x != 2\nassert y, '!'\nmodel.train()\nhelp?"
    (cell,) = cells_of(notebook(tmp_path / "a.ipynb", source))
    assert cell.source.splitlines() == [*source.splitlines()[:-1], "pass"]
    assert cell.skipped == ["help?"]


def test_a_cell_that_is_python_is_run_as_it_is(tmp_path: Path) -> None:
    source = "text = '''\n%matplotlib inline\n!ls\n'''\nrest = (7\n    % 3)"
    (cell,) = cells_of(notebook(tmp_path / "a.ipynb", source))
    assert (cell.source, cell.skipped) == (source, [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is not Python, In[1], line 2: invalid syntax"),
        ('{"a": 1}', "is no notebook: expected a notebook of nbformat 4, found None"),
        ("{", "is no notebook: "),
    ],
)
def test_what_is_none_is_refused(tmp_path: Path, text: str | None, says: str) -> None:
    file = notebook(tmp_path / "a.ipynb", "x = 1\ndef f(:")
    if text is not None:
        file.write_text(text)
    with pytest.raises(CannotTry) as refused:
        readable_script(str(file))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("--cofig=3", "there is no option --cofig, and no script of"),
        (".", "is a folder without a __main__.py"),
    ],
)
def test_what_is_no_script_is_said(script: str, says: str) -> None:
    with pytest.raises(CannotTry) as refused:
        readable_script(script)
    assert says in str(refused.value)
