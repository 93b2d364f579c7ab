"""Findings become annotations of GitHub's workflow runs, where one is going on."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.documented_run.record import BlockRecord, DocumentsRecord, Provenance
from harness.findings import Finding
from harness.report import annotations as github
from harness.report import log
from tests.server import server_of

SILENT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters())
for inputs, labels in DataLoader(TensorDataset(torch.randn(32, 4), torch.arange(32) % 2), batch_size=4, shuffle=True):
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
"""


def annotated(findings: list[Finding]) -> list[str]:
    return list(github.of_log(log.Log("check", log.of_findings(findings), [])))


def test_a_finding_is_shown_at_its_line() -> None:
    finding = Finding("a, b", "50 %", "do this", "train.py:61, the loop", 2, "loss::finite", "error", "It is: so.")
    assert annotated([finding]) == [
        "::error file=train.py,line=61,title=loss%3A%3Afinite%3A It is%3A so.::expected a, b; observed 50 %25%0Ado this"
    ]


def test_a_finding_without_a_line_has_none() -> None:
    (line,) = annotated([Finding("e", "o", "h", "split train", None, "c", "warning", "m")])
    assert line == "::warning title=c%3A m::expected e; observed o%0Ah"


@pytest.mark.parametrize(
    ("outcome", "lines"),
    [
        ("fails", ["::error file=docs/a.md,line=7,title=documents%3A%3Afails%3A f()::it broke%0Awrite g() (s#1)"]),
        (
            "deprecated",
            ["::warning file=docs/a.md,line=7,title=documents%3A%3Adeprecated%3A f()::it broke%0Awrite g() (s#1)"],
        ),
        ("runs", []),
    ],
)
def test_a_block_is_shown_in_its_document(outcome: str, lines: list[str]) -> None:
    about = {"document": "a", "file": "a.md", "number": 1, "line": 7, "label": "f()", "key": "k", "outcome": outcome}
    block = BlockRecord(**about, says="it broke", replacement="g()", source="s#1")  # type: ignore[arg-type]
    record = DocumentsRecord(recipe={}, fingerprint={}, provenance=Provenance(), started="", blocks=[block])
    assert list(github.of_log(log.of_documents(record, {"a.md": Path("docs/a.md")}))) == lines


@pytest.mark.parametrize("github", [True, False])
def test_check_annotates_where_github_runs_it(github: bool, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "train.py").write_text(SILENT)
    environment = {"GITHUB_ACTIONS": "true" if github else ""}
    done = server_of(pytestconfig).run(tmp_path, "check", "train.py", environment=environment)
    assert done.status == 1
    assert ("::error file=train.py,line=8,title=gradients%3A%3Anot-cleared" in done.stdout) == github


@pytest.mark.parametrize("from_workspace", [False, True])
def test_files_are_named_from_the_root_of_the_repository(
    from_workspace: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job with ``working-directory: models/small`` works below the root."""
    (tmp_path / "repo" / "models" / "small").mkdir(parents=True)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    if from_workspace:
        monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "repo"))
    else:
        (tmp_path / "repo" / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "repo" / "models" / "small")
    (line,) = annotated([Finding("a", "b", "c", "train.py:61", 2, "loss::not-finite", "error", "d")])
    assert line.startswith("::error file=models/small/train.py,line=61,")
    monkeypatch.chdir(tmp_path)
    assert github.from_repository("elsewhere.py") == "elsewhere.py"
