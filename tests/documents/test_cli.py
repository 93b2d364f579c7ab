"""``harness documents`` as a maintainer of documents meets it: rows, patch, replacements, interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.documented_run.record import DocumentsRecord
from tests.documents.test_forms import cell, notebook
from tests.versions import installed

FAILING = """\
# {0}

```py
# {0}
from datasets import load_dataset, load_metric  # {0}
```

Words about `load_metric`, and a block that runs:

```py
metric = load_metric("glue", "mrpc")
metric.compute(predictions=[1, 0],   references=[1, 1])["accuracy"]
```
```py
'load_metric'
```
"""

removed = pytest.mark.skipif(installed("datasets<3"), reason="datasets has load_metric until 2.21")


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    (tmp_path / "docs" / "de").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return lambda *arguments: CliRunner().invoke(main, ["documents", "docs", "--output", "out", *arguments])


def write(path: Path, content: str) -> bytes:
    path.write_bytes(content.encode())
    return path.read_bytes()


@removed
@pytest.mark.nightly
def test_fix_and_run_again(harness: Callable[..., Result], tmp_path: Path) -> None:
    english, german, cells = (tmp_path / "docs" / name for name in ("a.md", "de/b.mdx", "c.ipynb"))
    write(english, FAILING.format("one"))
    write(german, FAILING.format("eins").replace("\n", "\r\n"))
    code = "from datasets import load_metric\n", "load_metric"
    write(cells, notebook(cell("words", kind="markdown"), cell(list(code)), cell("open('absent')")))
    before = {path: path.read_bytes() for path in (english, german, cells)}

    shown = harness("--diff")
    assert shown.exit_code == 1, shown.output
    assert "FAILS" in shown.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert shown.stdout.startswith("--- a/docs/a.md\n+++ b/docs/a.md\n")

    result = harness("--fix")
    assert result.exit_code == 1, result.output  # of open('absent')
    assert "replaced 3 blocks in 3 documents" in result.stdout
    (row,) = [at for at, line in enumerate(result.stdout.splitlines()) if line.startswith("a:1 (line 4)")]
    rows = result.stdout.splitlines()[row : row + 4]
    assert "FAILS" in rows[0]
    assert rows[1].startswith("    ImportError: cannot import name 'load_metric'")
    assert "write  evaluate.load" in rows[2]
    assert rows[3] == "    also   b:1"
    import_, new = (
        "from datasets import load_dataset, load_metric",
        ("from evaluate import load as load_metric\nfrom datasets import load_dataset"),
    )
    assert english.read_bytes() == before[english].replace(import_.encode(), new.encode())
    assert german.read_bytes() == before[german].replace(import_.encode(), new.replace("\n", "\r\n").encode())
    assert cells.read_bytes() == before[cells].replace(
        b"from datasets import load_metric", b"from evaluate import load as load_metric"
    )
    applied = {path: path.read_bytes() for path in before}
    for path, content in before.items():
        path.write_bytes(content)
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=shown.stdout_bytes, cwd=tmp_path, check=True)
    assert {path: path.read_bytes() for path in before} == applied

    (tmp_path / "docs" / "c.ipynb").unlink()
    again = harness("--fix")
    assert again.exit_code == 0, again.output
    assert "replaced" not in again.stdout
    assert {path: path.read_bytes() for path in (english, german)} == {p: applied[p] for p in (english, german)}


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_keeps_what_there_is(number: signal.Signals, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hangs = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    text = f"```py\n1 + 1\n```\n```py\n{hangs}\n```\n"
    (tmp_path / "a.md").write_text(text)
    command = [sys.executable, "-m", "harness", "documents", str(tmp_path / "a.md"), "--fix", "--output", str(tmp_path)]
    # A shell starts what runs in its background deaf to an interrupt.
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, preexec_fn=hears, **pipes)
    until = time.monotonic() + 240
    while not (pid.exists() and pid.read_text()) and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert f"harness: interrupted; the results so far are in {tmp_path / 'documents.json'}" in err
    assert "Traceback" not in err
    assert out.startswith("a:1 (line 2)")
    record = DocumentsRecord.model_validate_json((tmp_path / "documents.json").read_bytes())
    assert record.interrupted
    assert [each.outcome for each in record.blocks] == ["runs"]
    other = Path("/proc", pid.read_text(), "stat")
    while other.exists() and other.read_text().split()[2] != "Z":
        assert time.monotonic() < until
    assert (tmp_path / "a.md").read_text() == text


@pytest.mark.nightly
def test_one_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither the block that it was at, nor the folder with the corpus."""
    pid, temporary = tmp_path / "pid", tmp_path / "tmp"
    temporary.mkdir()
    hangs = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    (tmp_path / "a.md").write_text(f"```py\n{hangs}\n```\n")
    command = [sys.executable, "-m", "harness", "documents", str(tmp_path / "a.md"), "--output", str(tmp_path / "out")]
    process = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(temporary)}, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 240
    while not (pid.exists() and pid.read_text()):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)
    assert list(temporary.glob("harness-documents-*"))
    process.kill()
    process.wait()
    block = Path("/proc", pid.read_text(), "stat")
    while list(temporary.glob("harness-*")) or (block.exists() and block.read_text().split()[2] != "Z"):
        assert time.monotonic() < until
        time.sleep(0.2)


def test_one_file_and_its_time_limit(harness: Callable[..., Result], tmp_path: Path) -> None:
    write(tmp_path / "docs" / "a.mdx", "```py\nwhile True: pass\n```\n")
    result = CliRunner().invoke(main, ["documents", "docs/a.mdx", "--timeout", "2", "--output", "out"])
    assert result.exit_code == 1, result.output
    assert "TimedOut: no end after 2 s" in result.stdout
    record = json.loads((tmp_path / "out" / "documents.json").read_text())
    assert (record["timeout"], record["interrupted"], list(record["seconds"])) == (2, False, ["a.mdx"])
    assert 2 <= record["blocks"][0]["seconds"] < 60


@pytest.mark.slow
def test_what_cannot_be_written_is_said(
    harness: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installed("datasets<3"):
        pytest.skip("datasets has load_metric until 2.21")
    listing = "1\n2\nfrom datasets import load_metric, load_dataset\nload_metric\n"
    before = write(tmp_path / "docs" / "a.txt", listing)
    result = harness("--fix")
    assert result.exit_code == 1, result.output
    assert "a:1: not changed: its lines are not those that were executed" in result.stdout
    assert (tmp_path / "docs" / "a.txt").read_bytes() == before


def test_a_document_that_is_not_there(harness: Callable[..., Result]) -> None:
    result = CliRunner().invoke(main, ["documents", "absent", "--output", "out"])
    assert result.exit_code == 2
    assert "absent not found; give a folder with documents (*.md, *.mdx, *.ipynb, *.txt)" in result.stderr
    assert not Path("out").exists()
    assert os.listdir("docs") == ["de"]
