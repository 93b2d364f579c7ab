"""What a run did, on one page: each line is right for a loop that is known, and changes where the loop does."""

from __future__ import annotations

import copy
import gc
import os
import random
import shutil
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from harness.baseline.training_file import StoredTraining
from harness.baseline.trainings import says_of, verdict
from harness.describe.description import Description
from harness.describe.page import describing
from harness.describe.results import Randomness, Saves
from harness.errors import CannotTry
from harness.report.trainings import verdict_lines
from harness.watch.events import ModelSaved, Save, TokenizerSaved
from harness.watch.facts.model_reloads import ModelReloaded
from harness.watch.facts.saved_models import EvaluatedSaved
from harness.watch.facts.saved_states import StateSaved


def train(
    *,
    rows: int = 60,
    size: int = 8,
    shuffle: bool = True,
    drop_last: bool = False,
    scale: float = 1.0,
    held_out: bool = True,
    lr: float = 0.01,
    decay: float = 0.01,
    clip: float | None = 1.0,
    clear: bool = True,
    accumulate: int = 1,
    divide: float = 1.0,
    reduction: str = "mean",
    frozen: bool = False,
    forgotten: bool = False,
    eval_mode: bool = True,
    no_grad: bool = True,
    schedule: bool = True,
    swapped: bool = False,
    mixed: bool = False,
    clipped: slice = slice(None),
    clip_each: bool = False,
    detached: bool = False,
    thrown: bool = False,
    restored: bool = False,
    drifts: bool = False,
    emptied: bool = False,
    best: bool = False,
    average: float | None = None,
    seed: int = 0,
    saved: Path | None = None,
) -> None:
    """A loop like the course's, of two epochs; every argument changes one thing that it does."""
    torch.manual_seed(seed)
    inputs = scale * torch.randn(80, 6, generator=torch.Generator().manual_seed(1))
    labels = (inputs[:, 0] > 0).long()
    labels = 1 - labels if swapped else labels
    labels = labels.clone() if not mixed else torch.cat((labels[:20].flip(0), labels[20:]))
    loader = DataLoader(
        TensorDataset(inputs[:rows], labels[:rows]), batch_size=size, shuffle=shuffle, drop_last=drop_last
    )
    test = slice(60, 80) if held_out else slice(0, 20)
    first = nn.Linear(6, 8)
    model = nn.Sequential(first, nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 2))
    first.requires_grad_(not frozen)
    held = first.parameters() if forgotten else model.parameters()
    optimizer = torch.optim.AdamW(held, lr=lr, weight_decay=decay)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=2 * len(loader))
    target = copy.deepcopy(model) if average is not None else None
    for _ in range(2):
        model.train()
        for number, (x, y) in enumerate(loader, start=1):
            said = model(x)
            loss = functional.cross_entropy(said, y, reduction=reduction) / divide
            (loss.detach() + said.square().mean() if thrown else loss).backward()
            if detached:
                first.zero_grad()
            if number % accumulate:
                if clip_each:
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                continue
            if clip is not None:
                nn.utils.clip_grad_norm_(list(model.parameters())[clipped], clip)
            optimizer.step()
            after: dict[Callable[[], object], bool] = {
                scheduler.step: schedule,
                optimizer.state.clear: emptied,
                partial(first.weight.data.add_, 0.1): drifts,
                optimizer.zero_grad: clear,
            }
            for what in (each for each, is_done in after.items() if is_done):
                what()
            if target is not None and average is not None:
                with torch.no_grad():
                    target(x)
                    for mine, its in zip(target.parameters(), model.parameters(), strict=True):
                        mine.lerp_(its, average)
        model.train(not eval_mode)
        with torch.set_grad_enabled(not no_grad):
            said = model(inputs[test])
            functional.cross_entropy(said, labels[test])
    if restored:
        model.load_state_dict(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 2)).state_dict())
    if saved is not None:
        torch.save(nn.Linear(6, 8).state_dict() if best else model.state_dict(), saved)


def did(**change: Any) -> Description:
    with describing() as found:
        train(**change)
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Description:
    return did(saved=tmp_path_factory.mktemp("saved") / "model.pt")


def test_the_page_says_what_the_loop_does(base: Description) -> None:
    page = str(base)
    for part in (
        "train: 60 rows, batches of 8, shuffled anew each time, the last batch of 4, 2 passes",
        "Sequential was trained on 60 different rows, each 2 times; inputs of 6 float32",
        "Sequential was evaluated on 20 rows; it was trained on none of them",
        "cross_entropy of 2 classes, 120 targets: 66 of class 0, 54 of class 1",
        "what is differentiated is the mean over the targets",
        "Sequential: 74 parameters (float32, cpu), all of them trainable",
        "1 of 1 module with dropout or batch statistics active",
        "AdamW: 4 tensors of 74 numbers, learning rate 0.01, weight decay 0.01",
        "the learning rate of AdamW goes from 0.01 to 0.000625 by LinearLR, stepped 16 times in 16 updates",
        "16 updates by AdamW, each of 1 backward pass; gradients cleared between them; norm clipped to 1",
        "Sequential called 2 times without an update, in eval mode, without gradients, after update 8, 16",
        "a state of 4 tensors to model.pt; after update 16; the weights of Sequential",
        "torch seeded with 0",
    ):
        assert " ".join(part.split()) in " ".join(page.split()), part
    assert len(page.splitlines()) < 60
    assert "test_page.py:" in page


CHANGES: list[tuple[dict[str, Any], str, Any, Any]] = [
    ({"rows": 52}, "data.train.rows", 60, 52),
    ({"rows": 52}, "data.Sequential.different", 60, 52),
    ({"size": 6}, "data.train.batch_size", 8, 6),
    ({"shuffle": False}, "data.train.order", "shuffled anew each time", "in order"),
    ({"drop_last": True}, "data.train.last_batch", 4, "dropped"),
    ({"scale": 255.0}, "data.Sequential.deviation", 1.03, 263.0),
    ({"held_out": False}, "data.Sequential.asked.trained_on_too", 0, 20),
    ({"seed": 1}, "data.train.first_order", None, None),
    ({"swapped": True}, "loss.cross_entropy.classes", {"0": 66, "1": 54}, {"0": 54, "1": 66}),
    ({"mixed": True}, "data.Sequential.with_targets_bits", None, None),
    ({"mixed": True}, "loss.cross_entropy.classes", {"0": 66, "1": 54}, {"0": 66, "1": 54}),
    ({"divide": 4.0}, "loss.share_of_the_mean", 1.0, 0.25),
    ({"divide": 4.0}, "loss.cross_entropy.weight", 1.0, 0.25),
    ({"thrown": True}, "loss.cross_entropy.differentiated", 16, 0),
    ({"thrown": True}, "loss.cross_entropy.weight", 1.0, None),
    ({"clip_each": True, "accumulate": 2}, "update.AdamW.clips", [1], [2]),
    ({"clipped": slice(2)}, "update.AdamW.clipped_tensors", [4, 4], [2, 2]),
    ({"detached": True}, "update.AdamW.without_gradient", [], ["0.bias", "0.weight"]),
    ({"frozen": True, "drifts": True}, "model.Sequential.frozen_changed", None, None),
    ({"drifts": True}, "model.Sequential.changed_between", [], ["0.weight"]),
    ({"emptied": True}, "update.AdamW.state_lost", 0, 15),
    ({"lr": 1e30}, "loss.not_finite", None, None),
    ({"restored": True}, "loaded.Sequential.after", None, None),
    ({"reduction": "sum"}, "loss.cross_entropy.reduction", "mean", "sum"),
    ({"frozen": True}, "model.Sequential.frozen", [], ["0.bias", "0.weight"]),
    ({"frozen": True}, "model.Sequential.trainable", 74, 18),
    ({"forgotten": True}, "optimizer.AdamW.in_none", [], ["3.bias", "3.weight"]),
    ({"forgotten": True}, "model.Sequential.unchanged", [], ["3.bias", "3.weight"]),
    ({"lr": 0.02}, "optimizer.AdamW.group_1.lr", 0.01, 0.02),
    ({"decay": 0.0}, "optimizer.AdamW.group_1.weight_decay", 0.01, 0.0),
    ({"schedule": False}, "schedule.AdamW.times", 16, 0),
    ({"average": 0.25}, "model.copy.target.shares", None, [0.25]),
    ({"average": 1.0}, "model.copy.target.shares", None, [1.0]),
    ({"schedule": False}, "schedule.AdamW.last", 0.000625, 0.01),
    ({"clip": None}, "update.AdamW.clipped", {"norm clipped to 1": 16}, {"not clipped": 16}),
    ({"clip": 5.0}, "update.AdamW.clipped", {"norm clipped to 1": 16}, {"norm clipped to 5": 16}),
    ({"clear": False}, "update.AdamW.stale", 0, 15),
    ({"accumulate": 2}, "update.AdamW.backward_passes", {"1": 16}, {"2": 8}),
    ({"eval_mode": False}, "evaluation.Sequential.modes", ["eval"], ["train"]),
    ({"no_grad": False}, "evaluation.Sequential.graph", "without gradients", "with a graph"),
    ({"best": True}, "saved.1.weights_of", ["Sequential"], None),
    ({"seed": 1}, "randomness.torch.seeds", [0], [1]),
]


@pytest.mark.parametrize(("change", "key", "was", "now"), CHANGES, ids=lambda value: str(value)[:40])
def test_what_changes_in_the_loop_changes_its_fact(
    change: dict[str, Any], key: str, was: Any, now: Any, base: Description, tmp_path: Path
) -> None:
    found = did(**change, saved=tmp_path / "model.pt").facts
    if (was, now) == (None, None):
        assert key in found
        assert found[key] != base.facts.get(key)
    else:
        assert base.facts.get(key) == pytest.approx(was) if isinstance(was, float) else base.facts.get(key) == was
        assert found.get(key) == pytest.approx(now) if isinstance(now, float) else found.get(key) == now


def test_the_same_loop_has_the_same_facts_and_numbers(base: Description, tmp_path: Path) -> None:
    again = did(saved=tmp_path / "model.pt")
    assert again.facts == base.facts
    assert again.numbers == base.numbers
    assert len(base.numbers["loss"]) == 9
    assert len(base.numbers["gradient_norm.AdamW"]) == 8


def test_norms_are_kept_as_they_are_before_clipping(tmp_path: Path) -> None:
    free, tight = (did(saved=tmp_path / "model.pt", clip=clip).numbers for clip in (None, 1e-3))
    assert "gradient_norm_before_clipping.AdamW" not in free
    assert all(each == pytest.approx(1e-3, rel=1e-2) for each in tight["gradient_norm.AdamW"])
    unclipped = tight["gradient_norm_before_clipping.AdamW"]
    assert unclipped[0] == pytest.approx(free["gradient_norm.AdamW"][0])
    assert len(unclipped) == 8
    assert min(unclipped) > 1e-2


def test_a_loop_without_a_loader_has_its_rows_too() -> None:
    rows, labels = torch.randn(24, 5), torch.randint(3, (24,))
    model = nn.Linear(5, 3)
    with describing() as found:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            for part in torch.arange(24).split(6):
                optimizer.zero_grad()
                functional.cross_entropy(model(rows[part]), labels[part]).backward()
                optimizer.step()
    assert found.facts["data.Linear.different"] == 24
    assert found.facts["data.Linear.times_each"] == [3, 3]
    assert found.facts["schedule.SGD.largest"] == 0.1
    assert "the learning rate of SGD stays 0.1" in str(found)


@pytest.mark.parametrize("used", ["train", "evaluation", "not passed to a model directly"])
def test_batches_that_are_kept_in_a_list_are_for_what_a_model_is_given_later(used: str) -> None:
    rows, labels = torch.randn(24, 5), torch.randint(3, (24,))
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with describing() as found:
        batches = list(DataLoader(TensorDataset(rows, labels), batch_size=6))
        for given, target in batches:
            if used == "train":
                optimizer.zero_grad()
                functional.cross_entropy(model(given), target).backward()
                optimizer.step()
            elif used == "evaluation":
                with torch.no_grad():
                    functional.cross_entropy(model(given[:, :]), target)
            else:
                model(given + 1)
    said = next(each.text for each in found.lines if each.section == "data")
    assert said.startswith(f"{used}: 24 rows, batches of 6")


def test_two_models_and_two_optimizers_have_lines_of_their_own() -> None:
    one, other = nn.Linear(4, 4), nn.Linear(4, 1)
    with describing() as found:
        optimizers = [torch.optim.Adam(one.parameters(), 0.1), torch.optim.Adam(other.parameters(), 0.2)]
        for _ in range(4):
            for optimizer in optimizers:
                optimizer.zero_grad()
            functional.mse_loss(other(one(torch.randn(8, 4))), torch.randn(8, 1)).backward()
            for optimizer in optimizers:
                optimizer.step()
    facts = found.facts
    assert (facts["optimizer.Adam.group_1.lr"], facts["optimizer.Adam#2.group_1.lr"]) == (0.1, 0.2)
    assert (facts["model.Linear.parameters"], facts["model.Linear#2.parameters"]) == (20, 5)
    assert facts["loss.mse_loss.counted"] == 32


def test_what_a_generator_makes_is_differentiated_after_what_judges_it() -> None:
    maker, judge = nn.Linear(2, 3), nn.Bilinear(3, 3, 1)
    with describing() as found:
        optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in (maker, judge)]
        for _ in range(3):
            made = maker(torch.randn(5, 2))
            judge(made.detach(), made.detach()).mean().backward()
            optimizers[1].step()
            judge(made, made).mean().backward()
            optimizers[0].step()
            for optimizer in optimizers:
                optimizer.zero_grad()
            judge(torch.randn(4, 3), torch.randn(4, 3))  # nobody differentiates it
    assert found.facts["model.Linear.training.mode"] == ["train"]
    assert "evaluation.Linear.calls" not in found.facts
    assert found.facts["data.Linear.given"] == 15
    assert found.facts["evaluation.Bilinear.calls"] == 3
    assert found.facts["evaluation.Bilinear.after_updates"] == [2, 6]


def test_a_part_of_a_model_that_is_called_alone_is_no_other_model() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    other = nn.Linear(2, 3)
    with describing() as found:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.randn(4, 2)).mean().backward()
        optimizer.step()
        with torch.no_grad():
            model[0](torch.randn(4, 2)), other(torch.randn(4, 2))
    page = " ".join(str(found).split())
    assert "Linear is called alone, with parameters of Sequential" in page
    assert "Linear#2 was called and never trained" in page


def test_folds_that_go_alike_are_one_line() -> None:
    with describing() as found:
        for _ in range(4):
            train()
    page = " ".join(str(found).split())
    assert "Sequential trained in train mode, 1 of 1 module with dropout or batch statistics active (4 alike)" in page
    assert found.facts["model.Sequential#4.training.mode"] == ["train"]
    assert len(str(found).splitlines()) < 60


def test_an_adapter_is_said_with_what_it_was_asked_for() -> None:
    peft = pytest.importorskip("peft", reason="needs peft")
    config = peft.LoraConfig(r=8, lora_alpha=16, target_modules=["0", "v_proj"])
    model = peft.get_peft_model(nn.Sequential(nn.Linear(2, 2)), config)
    with describing() as found:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.randn(4, 2)).mean().backward()
        optimizer.step()
    said = "adapter default: Lora of rank 8 on 0, v_proj, in 1 module; no module is named v_proj"
    assert said in " ".join(str(found).split())
    assert found.facts["model.PeftModel.adapter.default.alpha"] == 16


def test_what_a_loop_draws_from_unseeded_is_said() -> None:
    with describing() as found:
        train()
        random.random()
        np.random.seed(3)
    assert found.facts["randomness.Python.drawn"] is True
    assert found.facts["randomness.Python.seeds"] == []
    assert found.facts["randomness.NumPy.seeds"] == [3]
    assert "Python not seeded, but used" in str(found)


def test_no_gpu_is_begun_to_be_used_by_asking_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that forks after that could not use it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: pytest.fail("it was asked"))
    section = Randomness(cast("Any", None))
    facts = {key: value for line in section.lines() for key, value in line.facts.items()}
    assert facts["randomness.torch.drawn"] is False
    torch.rand(1)
    assert {key: value for line in section.lines() for key, value in line.facts.items()}["randomness.torch.drawn"]


def test_a_loader_that_is_never_read_is_said() -> None:
    with describing() as found:
        DataLoader(TensorDataset(torch.zeros(12, 2)))
        train()
    assert found.facts["data.unread.rows"] == 12
    assert "a DataLoader was made and never read" in str(found)


def _nothing() -> None:
    pass


@pytest.mark.parametrize("block", [_nothing, partial(torch.randn, 3)])
def test_a_block_without_a_model_cannot_be_described(block: Callable[[], object]) -> None:
    with pytest.raises(CannotTry, match="no model was called"), describing():
        block()


def test_a_section_that_fails_is_said_and_the_others_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_DEBUG", raising=False)
    monkeypatch.setattr("harness.describe.models._bits", lambda tensor: 1 / 0)
    found = did()
    assert found.notes == ["what the section Models tells is not known: it failed itself"]
    assert not any(key.startswith("model.") for key in found.facts)
    assert found.facts["update.AdamW.steps"] == 16


class Pair(nn.Module):
    """A language model of pairs of letters."""

    def __init__(self) -> None:
        super().__init__()
        self.of = nn.Embedding(7, 7)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.of(tokens)


@pytest.mark.parametrize(("ignored", "taught", "ends"), [(0, 24, 4), (-100, 36, 4)])
def test_the_tokens_that_are_taught_are_counted(ignored: int, taught: int, ends: int) -> None:
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6, 1, 0, 0, 0]] * 4)
    model = Pair()
    with describing() as found:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        logits = model(tokens)[:, :-1]
        functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=ignored).backward()
        optimizer.step()
    assert found.facts["taught.taught"] == taught
    assert found.facts["taught.rows"] == 4


SCORES = [
    (lambda said, labels: said.argmax(1) == labels, "compared", "rows bool"),
    (lambda said, labels: functional.cross_entropy(said, labels), "cross_entropy", "rows x 2 float32"),
    (lambda said, labels: (said[:, 0] - labels).abs(), "subtracted", "rows float32 and rows int64"),
    (lambda said, labels: (said - labels[:, None]).square(), "subtracted", "rows x 2 float32 and rows x 1 int64"),
]


@pytest.mark.parametrize(("score", "name", "of"), SCORES, ids=lambda value: str(value)[:20])
def test_what_a_script_scores_itself_is_said(score: Callable[..., object], name: str, of: str) -> None:
    model, labels = nn.Linear(4, 2), torch.tensor([0, 1, 1, 0])
    with describing() as found:
        train()
        model.eval()
        with torch.no_grad():
            score(model(torch.randn(4, 4)), labels)
    assert of in found.facts[f"metric.by_hand.{name}.of"]


def test_a_metric_has_its_values_and_what_was_predicted() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    with describing() as found:
        train()
        metrics.f1_score([0, 1, 1, 0], [0, 1, 1, 1], average="macro")
    facts = found.facts
    assert found.numbers["metric.f1_score.predicted"] == [1.0, 3.0]
    assert facts["metric.f1_score.references"] == {"0": 2, "1": 2}
    assert facts["metric.f1_score.options"] == {"average": "macro"}
    assert found.numbers["metric.f1_score.f1_score"] == [pytest.approx(0.7333, abs=1e-4)]


def test_rows_that_the_preprocessing_drops_are_the_first_thing_that_differs() -> None:
    """As trl#6421: prompts that are too long were dropped, and a test of numbers could not say why its loss moved."""
    lengths = torch.arange(60) % 12

    def prepared(longest: int) -> Description:
        keep = lengths <= longest
        with describing() as found:
            torch.manual_seed(0)
            rows, labels = torch.randn(60, 4)[keep], torch.randint(2, (60,))[keep]
            model = nn.Linear(4, 2)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            for x, y in DataLoader(TensorDataset(rows, labels), batch_size=8, shuffle=True):
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        return found

    before, after = prepared(12), prepared(9)
    machine = {"device": "cpu"}
    stored = StoredTraining("train.py", None, machine, before.facts, says_of(before), before.numbers, {})
    found = verdict("sft", stored, after, machine)
    first, *behind = found.changed
    assert (first, behind[-1]) == ("data", "numbers")
    said = "\n".join(verdict_lines(found))
    assert "data.train.rows: 60 -> 50" in said
    assert "numbers differ too" in said


def test_rows_of_the_source_stand_beside_those_that_were_left_of_them() -> None:
    datasets = pytest.importorskip("datasets")
    source = datasets.Dataset.from_dict({"x": list(range(30))})
    with describing() as found:
        source.filter(lambda row: row["x"] % 3 > 0)
        source.map(lambda rows: {"y": [1, 2]}, batched=True, batch_size=10, remove_columns=["x"])
        source.map(lambda row: {"y": 2 * row["x"]})
        train()
    page = str(found)
    assert "filter kept 20 of 30 rows (" in page
    assert "map made 6 of 30 rows (" in page
    facts = found.facts
    assert (facts["data.preparing.filter.rows"], facts["data.preparing.filter.kept"]) == (30, 20)
    assert [key for key in facts if key.startswith("data.preparing.map#2")] == []


@pytest.mark.parametrize("actions", [2, 4])  # as many as a state has numbers, too
def test_an_agent_and_the_network_that_its_targets_come_from(actions: int, tmp_path: Path) -> None:
    """A row is a vector; what gradients reach and no optimizer has is not trained; what is loaded again is no other."""
    net, target = nn.Linear(4, actions), nn.Linear(4, actions)
    target.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters())
    with describing() as found:
        for _ in range(5):
            net(torch.randn(4)).argmax()
            loss = functional.mse_loss(net(torch.randn(8, 4)), target(torch.randn(8, 4)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        target.load_state_dict(net.state_dict())
        with (tmp_path / "net.pt").open("wb") as file:
            torch.save(net, file)
        again = torch.load(tmp_path / "net.pt", weights_only=False)
        again(torch.randn(8, 4))
    page = " ".join(str(found).split())
    assert "Linear was trained on 40 different rows; inputs of 4 float32" in page
    assert "Linear was evaluated on 5 rows; it was trained on none of them" in page
    assert "Linear#2 was differentiated on 40 different rows" in page
    assert "in no optimizer, though gradients reach it" in page
    assert "was loaded into Linear#2, after update 5" in page
    assert "Linear#3 has the weights of Linear and was not trained" in page
    assert "Linear, the module itself to net.pt; after update 5" in page


def test_a_look_at_the_training_rows_within_a_pass_over_them() -> None:
    rows = DataLoader(TensorDataset(torch.randn(24, 2), torch.arange(24) % 2), batch_size=8, shuffle=True)
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with describing() as found:
        for x, y in rows:
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for inputs, _ in rows:
                    model(inputs)
                    break
    page = " ".join(str(found).split())
    assert "train: 24 rows, batches of 8, shuffled, one pass (" in page
    assert "evaluation: 24 rows, batches of 8, shuffled anew each time, 8 rows a pass, 3 passes, 3 left before" in page


def test_a_mean_over_rows_is_that_of_batches_by_their_size() -> None:
    unseen = DataLoader(TensorDataset(torch.randn(20, 2), torch.arange(20) % 2), batch_size=16)
    model = nn.Linear(2, 2)
    with describing() as found, torch.no_grad():
        for x, y in unseen:
            functional.cross_entropy(model(x), y, reduction="sum")
        for x, y in unseen:
            functional.nll_loss(model(x).log_softmax(1), y)
    one, other = found.numbers["metric.by_hand.cross_entropy"], found.numbers["metric.by_hand.nll_loss"]
    x, y = unseen.dataset.tensors  # type: ignore[attr-defined]
    assert one == other == [pytest.approx(float(functional.cross_entropy(model(x), y).detach()), rel=1e-5)]
    assert "on average over 20, after update 0" in " ".join(str(found).split())


def test_a_transformer_that_compares_its_masks_scores_nothing() -> None:
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerDecoder(layer, 1).eval()
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    with describing() as found, torch.no_grad():
        model(torch.randn(2, 4, 8), torch.randn(2, 4, 8))
        model(torch.randn(2, 4, 8), torch.randn(2, 4, 8), tgt_mask=causal)
    assert "where predictions are equal" not in str(found)


def test_of_a_model_that_is_gone_nobody_says_what_never_changed() -> None:
    """It was first called after the updates that are all looked at."""

    def trained(updates: int) -> weakref.ref[nn.Module]:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(updates):
            optimizer.zero_grad()
            model(torch.randn(4, 2)).square().mean().backward()
            optimizer.step()
        return weakref.ref(model)

    with describing() as found:
        gone = [trained(10), trained(10)]
        gc.collect()
        assert [each() for each in gone] == [None, None]
    assert "never changed" not in str(found)
    assert found.facts["model.Linear.unchanged"] == []
    assert found.facts["model.Linear#2.unchanged"] == "not known"


def test_what_a_penalty_of_gradients_differentiates_is_trained_on() -> None:
    critic = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(critic.parameters())
    with describing() as found:
        for _ in range(3):
            mixed = torch.randn(8, 4, requires_grad=True)
            said = critic(mixed)
            (gradient,) = torch.autograd.grad(said.sum(), mixed, create_graph=True)
            (said.mean() + (gradient.norm(dim=1) - 1).square().mean()).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert "Linear was trained on 24 different rows" in str(found)
    assert "without an update" not in str(found)


@pytest.mark.parametrize(("updates", "partly"), [(3, False), (260, True)])
def test_a_loop_without_a_module_or_an_optimizer_is_described_too(updates: int, partly: bool) -> None:
    weight = torch.zeros(2, 2, requires_grad=True)
    rows, labels = torch.randn(8, 2), torch.randint(2, (8,))
    with describing() as found:
        for _ in range(updates):
            loss = -(rows @ weight).log_softmax(1).gather(1, labels[:, None]).mean()
            (gradient,) = torch.autograd.grad(loss, [weight])
            with torch.no_grad():
                weight -= 0.1 * gradient
    assert found.updates == updates
    page = " ".join(str(found).split())
    assert "nll_loss written by hand of 2 classes" in page
    assert ("in the updates that were looked at" in page) == partly


def test_closures_are_counted_apart_from_the_backward_pass_of_an_update() -> None:
    model = nn.Linear(3, 1)
    with describing() as found:
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = functional.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 1))
            loss.backward()
            return loss

        optimizer.step(closure)
    assert found.facts["update.LBFGS.closures"] >= 1
    assert "which called their closures for" in str(found)


@pytest.mark.parametrize(("by_value", "said"), [(True, "values clipped to 0.5"), (False, "norm clipped to 0.5")])
def test_how_gradients_are_clipped_is_said(by_value: bool, said: str) -> None:
    model = nn.Linear(3, 1)
    with describing() as found:
        clip = nn.utils.clip_grad_value_ if by_value else nn.utils.clip_grad_norm_
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.ones(4, 3)).mean().backward()
        clip(model.parameters(), 0.5)
        optimizer.step()
    assert found.facts["update.SGD.clipped"] == {said: 1}


def test_what_runs_under_autocast_is_said() -> None:
    model = nn.Linear(3, 1)
    with describing() as found:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(torch.ones(4, 3)).float().mean()
        loss.backward()
        optimizer.step()
    assert found.facts["model.Linear.training.autocast"] == "bfloat16"


def test_what_lies_above_a_threshold_and_what_pairs_is_said() -> None:
    model, labels = nn.Linear(4, 1), torch.tensor([0.0, 1.0, 1.0, 0.0])
    with describing() as found:
        train()
        model.eval()
        with torch.no_grad():
            said = model(torch.randn(4, 4))
            (said > 0.25), (said - labels)
    assert found.facts["metric.by_hand.threshold.of"] == {"0.25": 1}
    assert found.facts["metric.by_hand.every_pair.of"] == {"rows x 1 float32 - rows float32": 1}


def _saves(state: object, **more: object) -> dict[str, Any]:
    """What the section of saves says of facts that are made by hand."""
    section = Saves(cast("Any", SimpleNamespace(fact=lambda kind: None, models=())))
    section.on_save(Save(state, "train.py:9", "/tmp/a/model.pt"))
    for name, fact in more.items():
        getattr(section, name)(fact)
    return {key: value for line in section.lines() for key, value in line.facts.items()}


def test_what_is_known_of_a_save_is_said() -> None:
    saved = SimpleNamespace(current=False, untouched=True)
    facts = _saves(
        {"weight": torch.zeros(1)},
        on_state_saved=StateSaved(saved=cast("Any", saved), where="train.py:9"),
        on_evaluated_saved=EvaluatedSaved(other=True, where="train.py:9"),
        on_model_reloaded=ModelReloaded(path="model", apart=0.2, where="train.py:9"),
    )
    assert (facts["saved.1.current"], facts["saved.1.untouched"]) == (False, True)
    assert facts["saved.other_than_evaluated"] is True
    assert facts["saved.1.again"] == "gives other answers"
    assert _saves(torch.zeros(1))["saved.1.what"] == ["a tensor"]
    assert _saves({"epoch": 3})["saved.1.what"] == ["a mapping of epoch"]


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_a_save_that_fits_several_models_is_of_the_one_that_has_its_weights(order: tuple[bool, bool]) -> None:
    section = Saves(cast("Any", SimpleNamespace(fact=lambda kind: None, models=())))
    section.on_save(Save({"weight": torch.zeros(1)}, "train.py:9", "/tmp/a/model.pt"))
    for current in order:
        saved = SimpleNamespace(current=current, untouched=not current)
        section.on_state_saved(StateSaved(saved=cast("Any", saved), where="train.py:9"))
    assert not any("not the weights" in line.text or "began with" in line.text for line in section.lines())


def test_a_model_and_its_tokenizer_in_one_folder_are_one_save() -> None:
    model = nn.Linear(2, 2)
    facts = _saves(
        model,
        on_model_saved=ModelSaved(model, "/tmp/a/out", "train.py:9"),
        on_tokenizer_saved=TokenizerSaved(None, "/tmp/a/out", "train.py:9"),
    )
    assert facts["saved.1.what"] == ["Linear by save_pretrained", "the tokenizer"]


@pytest.mark.parametrize("ascends", [True, False])
@pytest.mark.parametrize("groups", ["one moves", "both move", "neither"])
def test_what_an_update_is_made_of(ascends: bool, groups: str) -> None:
    """Two backward passes with other weights, as SAM's; groups whose learning rates go their own ways."""
    torch.manual_seed(0)
    body, head = nn.Linear(6, 6), nn.Linear(6, 2)
    model = nn.Sequential(body, head)
    with describing() as found:
        held: list[dict[str, Any]] = [{"params": body.parameters()}, {"params": head.parameters(), "lr": 0.01}]
        optimizer = torch.optim.SGD(held, lr=0.1)
        for number in range(10):
            x = torch.randn(16, 6)
            functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
            if ascends:
                ascents = [0.01 * each.grad for each in model.parameters() if each.grad is not None]
                with torch.no_grad():
                    torch._foreach_add_(list(model.parameters()), ascents)
                optimizer.zero_grad()
                functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
                with torch.no_grad():
                    torch._foreach_sub_(list(model.parameters()), ascents)
            optimizer.step()
            optimizer.zero_grad()
            for group in {"one moves": optimizer.param_groups[:1], "neither": []}.get(groups, optimizer.param_groups):
                group["lr"] *= 1 - number / 10
    text = " ".join(str(found).split())
    said = "the gradients of 10 further backward passes moved the weights and were then cleared"
    assert (said in text) == ascends
    assert ("group 1 from 0.1 to 0.0003629, group 2 stays 0.01, set by the script itself" in text) == (
        groups == "one moves"
    )
    assert ("the learning rate of SGD goes from 0.1 to" in text) == (groups == "both move")
    assert ("the learning rate of SGD stays 0.1" in text) == (groups == "neither")


@pytest.mark.parametrize(
    ("mask", "taught"),
    [
        (lambda losses, mask: (losses * mask).sum() / mask.sum(), 20),
        (lambda losses, mask: losses[mask > 0].mean(), 20),
        (lambda losses, mask: losses.view(-1).mean(), 44),
        (lambda losses, mask: (losses.sum(1) * (mask.sum(1) > 0)).mean(), 44),
    ],
)
def test_what_a_mask_by_hand_leaves_out_is_not_taught(mask: Callable[..., torch.Tensor], taught: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(40, 8), nn.Linear(8, 40))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    answers = torch.zeros(4, 12)
    answers[:, 7:] = 1
    with describing() as found:
        for _ in range(6):
            ids = torch.randint(4, 40, (4, 12))
            said = model(ids)[:, :-1].reshape(-1, 40)
            losses = functional.cross_entropy(said, ids[:, 1:].reshape(-1), reduction="none").view(4, 11)
            mask(losses, answers[:, 1:]).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert found.facts["taught.taught"] == 6 * taught
    assert found.facts.get("loss.cross_entropy.weightless", 0) == 6 * (44 - taught)


RENAMES: dict[str, Callable[[Path, Path], object]] = {
    "os.replace": lambda one, other: os.replace(one, other),
    "os.rename": lambda one, other: os.rename(str(one), dst=str(other)),
    "shutil.move": lambda one, other: shutil.move(one, other),
    "Path.replace": lambda one, other: one.replace(other),
}


@pytest.mark.parametrize("how", RENAMES)
def test_a_file_is_called_what_it_is_called_in_the_end(how: str, tmp_path: Path) -> None:
    """And not by the name under which it was written first."""
    with describing() as found:
        train()
        for name in ("last.pt", "best.pt"):
            torch.save({"epoch": 1}, tmp_path / f"{name}.12345.part")
            RENAMES[how](tmp_path / f"{name}.12345.part", tmp_path / name)
    (said,) = [each for each in str(found).splitlines() if each.startswith("saved")]
    assert "last.pt, best.pt" in said
    assert "part" not in str(found)


class Masked(nn.Module):
    """A model of tokens that is told which of them are padding."""

    def __init__(self) -> None:
        super().__init__()
        self.of = nn.Embedding(10, 2)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return (self.of(input_ids) * attention_mask[..., None]).sum(1)


def test_rows_that_differ_in_their_padding_alone_are_the_same_row() -> None:
    model = Masked()
    with describing() as found:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for tokens in ([[1, 2, 9, 9]], [[1, 2, 7]], [[1, 3, 9]]):
            ids = torch.tensor(tokens)
            mask = (torch.arange(ids.shape[1]) < 2).long()[None]
            model(ids, mask).mean().backward()
            optimizer.step()
    assert found.facts["data.Masked.different"] == 2
    assert found.facts["data.Masked.hidden"] == 4
