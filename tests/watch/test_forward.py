"""Scripts that call ``model.forward(...)``, which is no call of the module: what is wrong is named all the same."""

from __future__ import annotations

import copy
import inspect
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from harness.watch import watch
from tests.checks.corpus import MARK
from tests.server import server_of

CHECKS = Path(__file__).parent.parent / "checks"
A_CALL = re.compile(r"(?<![\w.])model\((?!\))")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.drop, self.out = nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self._features(inputs))
        return logits

    def _features(self, inputs: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.drop(self.hidden(inputs).relu())
        return features


@pytest.mark.parametrize("name", ["bad", "good"])
@pytest.mark.parametrize(
    "check",
    [
        "gradients/not-cleared",
        "mode/training-in-eval-mode",
        "parameters/unchanged",
        "model/output-depends-on-batch",
        "rows/labels-of-other-rows",
        "inputs/rows-ignored",
    ],
)
def test_the_verdict_is_that_of_a_call(check: str, name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    script = (CHECKS / check / f"{name}.py").read_text(encoding="utf-8").replace(MARK, "")
    by_forward = A_CALL.sub("model.forward(", script)
    assert by_forward != script
    (tmp_path / "train.py").write_text(by_forward, encoding="utf-8")
    done = server_of(pytestconfig).run(tmp_path, "check", "--strict", "train.py", together="watched")
    assert done.status == (name == "bad"), done.stderr
    assert (check.replace("/", "::") in done.stderr) == (name == "bad")


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_an_evaluation_by_forward_is_seen(mode: str) -> None:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    rows = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
    with watch(raise_errors=False) as watched:
        for _ in range(2):
            model.train()
            for inputs, labels in torch.utils.data.DataLoader(rows, 16, shuffle=True):
                optimizer.zero_grad()
                cross_entropy(model.forward(inputs), labels).backward()
                optimizer.step()
            model.train(mode == "train")
            held_out = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
            with torch.no_grad():
                for inputs, labels in torch.utils.data.DataLoader(held_out, 16):
                    (model.forward(inputs).argmax(dim=1) == labels).sum().item()
    assert list(watched.findings) == ["mode::evaluation-in-train-mode"] * (mode == "train")


def test_every_batch_of_an_evaluation_by_forward_counts() -> None:
    """Also the first, where the training calls the model."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    rows = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
    held_out = torch.utils.data.TensorDataset(torch.randn(48, 8), torch.randint(2, (48,)))
    with watch() as watched:
        for inputs, labels in torch.utils.data.DataLoader(rows, 16, shuffle=True):
            optimizer.zero_grad()
            cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for inputs, labels in torch.utils.data.DataLoader(held_out, 16):
                (model.forward(inputs).argmax(dim=1) == labels).sum().item()
    assert "rows::evaluation-incomplete" in watched.looked


def test_a_class_is_as_it_was_afterwards() -> None:
    """And meanwhile it has its signature, and copies of its models work."""
    torch.manual_seed(0)
    model, before = Net(), Net.forward
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch():
        for _ in range(3):
            optimizer.zero_grad()
            cross_entropy(model.forward(torch.randn(16, 8)), torch.randint(2, (16,))).backward()
            optimizer.step()
        assert Net.forward is not before
        assert list(inspect.signature(model.forward).parameters) == ["inputs"]
        copy.deepcopy(model).eval().forward(torch.randn(4, 8))
    assert Net.forward is before


@pytest.mark.filterwarnings("ignore:.*jit.*:DeprecationWarning")
def test_the_forward_of_a_scripted_model_is_left_alone() -> None:
    torch.manual_seed(0)
    model = torch.jit.script(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch() as watched:
        for update in range(4):
            called = model if update % 2 else model.forward
            optimizer.zero_grad()
            cross_entropy(called(torch.randn(16, 8)), torch.randint(2, (16,))).backward()
            optimizer.step()
    assert watched.broken is None
    assert not watched.crashed
