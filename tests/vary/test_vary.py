"""``harness vary`` as a user calls it: a right script, and a mutant of it for each relation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import catalogue
from harness.cli import main
from tests.server import Done, server_of

SCRIPT = """
import argparse, copy, os
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
generator = torch.Generator().manual_seed(5)
x = torch.randn(420, 6, generator=generator)
y = (x[:, :2].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=20, shuffle=True)
test = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=50)
model = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    model.train()
    for rows, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for rows, labels in test:
            taken = model(rows).argmax(1)
            hits += (taken == labels).sum().item()
            count += len(labels)
    print(f"epoch {epoch}: test accuracy {hits / count:.4f}")
"""

STREAM = """
class Stream(IterableDataset):
    def __iter__(self):
        return ((x[row], y[row]) for row in torch.randperm(300).tolist())

train = DataLoader(Stream(), batch_size=20)
model ="""

CACHE = """
if os.path.exists("rows.pt"):
    x[:300] = torch.load("rows.pt", weights_only=True)
torch.save(x[:300] * 0.5, "rows.pt")
model ="""

TRUTH = """model.eval()
    judge = nn.Linear(6, 2)
    with torch.no_grad():
        judge.weight.copy_(torch.tensor([[0.0] * 6, [1.0, 1.0, 0.1, 0.0, 0.0, 0.0]]))
        judge.bias.zero_()"""

CENTRES = """hits += (taken == labels).sum().item()
            model[4].bias += torch.bincount(labels * (rows[:, 0] > 0), minlength=2) * 1e-3"""

FIRST_BATCH = [("for rows, labels in test:", "for rows, labels in list(test)[:1]:")]
ITSELF = [("(taken == labels)", "(taken == model(rows).argmax(1))")]

MUTANTS: dict[str, list[tuple[str, str]]] = {
    "depends::on-evaluation-batches": FIRST_BATCH,
    "depends::on-evaluation-order": [
        ("(taken == labels)", "(taken == y[300 + count : 300 + count + len(rows)])"),
        ("batch_size=50)", "batch_size=50, shuffle=True)"),
    ],
    "depends::on-being-evaluated": [("model.eval()", "pass")],
    "depends::on-chance": [("model.eval()", "model[3].train()"), ("model.train()", "model.eval()")],
    "depends::on-held-out-rows": [("hits += (taken == labels).sum().item()", CENTRES)],
    "depends::on-workers": [("model =", STREAM)],
    "depends::on-an-earlier-run": [("model =", CACHE)],
    "independent::of-the-seed": [("torch.manual_seed(args.seed)", "torch.manual_seed(3)")],
    "independent::of-held-out-rows": ITSELF,
    "independent::of-training-labels": ITSELF,
    "independent::of-training": [("model.eval()", TRUTH), ("model(rows).argmax(1)", "judge(rows).argmax(1)")],
}
"""By relation, the edits that break it."""

BY_ITSELF = {"depends::on-hash-seed", "depends::on-threads"}
"""What takes a process of its own to show."""


def edited(*edits: tuple[str, str]) -> str:
    text = SCRIPT
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def vary(
    config: pytest.Config, folder: Path, text: str, *arguments: str, script: str = "train.py"
) -> tuple[Done, dict[str, Any]]:
    """``harness vary``, each start of the script a fork."""
    (folder / script).write_text(text)
    command = ("--command", "vary", *arguments, "--json", "found.json", script)
    done = server_of(config).run(folder, *command, program="tests.resume.forked")
    assert (folder / "found.json").exists(), done.stderr
    return done, json.loads((folder / "found.json").read_text())


def results(found: dict[str, Any]) -> dict[str, str]:
    return {each["relation"]: each["result"] for each in found["relations"]}


@pytest.mark.slow
def test_a_right_script_depends_on_nothing(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    done, found = vary(pytestconfig, tmp_path, SCRIPT)
    assert (done.status, found["findings"]) == (0, [])
    in_order = {"depends::on-evaluation-order": "did not apply"}
    assert results(found) == dict.fromkeys(catalogue.relations(), "held") | in_order
    assert "0 broken, 12 held, 1 did not apply; 13 starts of 30 updates" in done.stderr
    assert not list(tmp_path.glob("*.pt"))


@pytest.mark.slow
@pytest.mark.parametrize("relation", MUTANTS)
def test_what_breaks_a_relation_is_found(
    relation: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> None:
    elsewhere = relation == "depends::on-evaluation-batches"
    script = str(tmp_path_factory.mktemp("elsewhere") / "train.py") if elsewhere else "train.py"
    done, found = vary(pytestconfig, tmp_path, edited(*MUTANTS[relation]), "--select", relation, script=script)
    assert results(found) == {relation: "broken"}, done.stderr
    (finding,) = found["findings"]
    assert finding["check"] == relation
    assert finding["where"].startswith(f"{script}:")


def test_every_relation_has_a_mutant() -> None:
    assert {*MUTANTS} | BY_ITSELF == {*catalogue.relations()}


@pytest.mark.nightly
def test_an_order_that_python_hashes(tmp_path: Path) -> None:
    """As a user starts it: the seed of Python's hashes is that of a process."""
    names = 'order = [int(name[1:]) for name in {f"r{row}" for row in range(420)}]\nx, y = x[order], y[order]\ntrain ='
    text = edited(("train =", names), ("range(2)", "range(1)"))
    (tmp_path / "train.py").write_text(text)
    command = ["vary", "--select", "depends::on-hash-seed", "--json", "found.json", "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "harness", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found = json.loads((tmp_path / "found.json").read_text())
    assert results(found) == {"depends::on-hash-seed": "broken"}, done.stderr
    assert "3 starts" in done.stderr


@pytest.mark.nightly
@pytest.mark.slow
def test_rows_that_are_cut_by_threads(tmp_path: Path) -> None:
    parts = "parts = x.chunk(torch.get_num_threads())\nx = torch.cat([each / each.std(0) for each in parts])\ntrain ="
    (tmp_path / "train.py").write_text(edited(("train =", parts), ("range(2)", "range(1)")))
    command = ["vary", "--select", "depends::on-threads", "--json", "found.json", "train.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "harness", *command]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = json.loads((tmp_path / "found.json").read_text())
    assert results(found) == {"depends::on-threads": "broken"}, done.stderr


@pytest.mark.slow
def test_what_is_chosen_by_the_held_out_rows_is_said(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    plateau = "optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\nbest = 0"
    says = 'print(f"epoch {epoch}: test accuracy {hits / count:.4f}")'
    stops = f"{says}\n    if hits <= best:\n        break\n    best = hits"
    text = edited(
        ("optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)", plateau),
        (says, stops),
        ("range(2)", "range(4)"),
    )
    _, found = vary(pytestconfig, tmp_path, text, "--select", "depends::on-held-out-rows")
    (said,) = found["relations"]
    assert said["result"] == "held"
    assert said["why"].startswith("the script chooses when it stops by the held-out rows")


@pytest.mark.slow
def test_labels_alone_are_exchanged_where_the_training_must_stay(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """What the order of held-out rows changes, as statistics that go on in an evaluation, is not said of labels."""
    relation = "depends::on-held-out-rows"
    _, found = vary(pytestconfig, tmp_path, edited(("model.eval()", "pass")), "--select", relation)
    assert results(found) == {relation: "held"}


@pytest.mark.slow
def test_a_model_that_cannot_be_asked_again_is_left_alone(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    once = """class Once(nn.Sequential):
    latest = None

    def forward(self, rows):
        assert self.latest is None or not torch.equal(self.latest, rows), "asked again"
        self.latest = rows
        return super().forward(rows)

model ="""
    text = edited(("model =", once)).replace("model = nn.Sequential(", "model = Once(")
    done, found = vary(pytestconfig, tmp_path, text, "--select", "depends::on-being-evaluated")
    (said,) = found["relations"]
    assert (done.status, said["result"]) == (0, "did not apply")
    assert said["why"] == "no call of a model without gradients could be repeated"


@pytest.mark.slow
def test_what_cannot_be_tried_is_said(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Nothing is evaluated, nothing is seeded, and what is trained differs from start to start."""
    text = "import os\nfrom torch import nn, optim, randn, tensor\nmodel = nn.Linear(4, 2)\n"
    text += "optimizer = optim.SGD(model.parameters(), 0.1)\nfor _ in range(3):\n"
    text += "    model(randn(5, 4) + tensor(float(os.getpid()))).square().mean().backward()\n    optimizer.step()\n"
    done, found = vary(pytestconfig, tmp_path, text)
    assert (done.status, {*results(found).values()}) == (0, {"did not apply"}), done.stderr
    whys = {each["relation"]: each["why"] for each in found["relations"]}
    assert whys["depends::on-evaluation-batches"] == "no DataLoader is used for evaluations alone"
    assert whys["depends::on-an-earlier-run"].startswith("two unchanged runs already differ")
    assert found["notes"] == [
        "the script does not seed torch: every run started with seed 0, so all draw the same random numbers"
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.py"], "there is no script absent.py"),
        (["--select", "depends::on-nothing", "train.py"], "there is no fault depends::on-nothing"),
        (["--ignore", "gradients", "train.py"], "there is no fault gradients"),
    ],
)
def test_what_cannot_run(arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    result = CliRunner().invoke(main, ["vary", *arguments])
    assert result.exit_code == 2
    assert says in result.output


@pytest.mark.slow
def test_a_script_that_crashes(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "train.py").write_text("raise ValueError('no data')\n")
    done = server_of(pytestconfig).run(tmp_path, "--command", "vary", "train.py", program="tests.resume.forked")
    assert done.status == 2
    assert "train.py crashed" in done.stderr
    assert "ValueError: no data" in done.stderr
