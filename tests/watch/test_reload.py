"""What a script saved is loaded again as the user says, without a network, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from harness.watch.reload import Order, loaded_again
from tests.server import Verdict, server_of

TRAIN = """
import torch
from mine import Net

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    inputs = torch.randn(16, 4)
    optimizer.zero_grad()
    ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean().backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""

MINE = """
import os
import torch

class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

def load(path):
    model = Net()
    model.load_state_dict(torch.load(path, weights_only=True))
    return model

def forgets(path):
    open("loaded", "w").close()
    torch.manual_seed(1)
    return Net()

def offline(path):
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    return load(path)
"""


def checked(folder: Path, config: pytest.Config, function: str, *options: str) -> Verdict:
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    (folder / "pyproject.toml").write_text(f'[tool.harness]\nreload = "mine:{function}"\n', encoding="utf-8")
    done = server_of(config).run(folder, "check", "--json", "found.json", *options, "train.py")
    return Verdict.of(folder / "found.json", done)


def test_a_state_of_ones_own_class_is_loaded_by_the_users_function(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    verdict = checked(tmp_path, pytestconfig, "load")
    assert verdict.checks == []
    assert "saved::loads-otherwise" in verdict.held


def test_a_function_that_loads_something_else_is_found(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    verdict = checked(tmp_path, pytestconfig, "forgets", "--in-place")
    assert verdict.checks == ["saved::loads-otherwise"]
    assert "loaded from model.pt" in verdict.findings[0]["observed"]
    assert (tmp_path / "loaded").exists()


def test_nothing_is_loaded_where_that_is_not_wanted(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    verdict = checked(tmp_path, pytestconfig, "forgets", "--in-place", "--no-reload")
    assert verdict.checks == []
    assert not (tmp_path / "loaded").exists()


def test_a_function_that_fails_is_said_and_judges_nothing(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    verdict = checked(tmp_path, pytestconfig, "lost")
    assert verdict.checks == []
    assert any("model.pt was not loaded again" in note and "lost" in note for note in verdict.notes)


def test_loading_asks_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    state = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).state_dict()
    torch.save(state, tmp_path / "model.pt")
    order = Order(True, loader="mine:offline", found_in=str(tmp_path))
    found = loaded_again(str(tmp_path / "model.pt"), order, [torch.ones(2, 4)])
    assert found.error is None
    assert found.logits is not None
    assert found.logits.shape == (2, 1)
    assert "HF_HUB_OFFLINE" not in os.environ


def test_tensors_of_other_shapes_are_told_from_what_cannot_be_found(tmp_path: Path) -> None:
    size = {"vocab_size": 20, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
    GPT2LMHeadModel(GPT2Config(bos_token_id=0, eos_token_id=0, **size)).save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"vocab_size": 20', '"vocab_size": 21'))
    order, given = Order(True, named="GPT2LMHeadModel"), {"input_ids": torch.ones(2, 4, dtype=torch.long)}
    found = loaded_again(str(tmp_path), order, (), given)
    assert found.misfit
    assert "mismatch" in str(found.error)
    absent = loaded_again(str(tmp_path / "absent"), order, (), given)
    assert absent.error is not None
    assert not absent.misfit
