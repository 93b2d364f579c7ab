"""Numbers that a script reports: how they are read, and by which formula they come out of what was evaluated."""

from __future__ import annotations

import copy
import csv
import io
import json
import logging
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

from harness.describe.page import describing
from harness.watch import watch
from harness.watch.facts.formula import formula
from harness.watch.facts.formulas import Part, Tally, mistakes, summed, values
from harness.watch.facts.reported_numbers import (
    Known,
    NumberReported,
    NumberSeries,
    judged,
    keys_of_mistakes,
    kind_of,
    numbers_in,
    outcome,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("epoch 3 val acc 0.8431 loss 1.25e-2", [("epoch", 3.0), ("val acc", 0.8431), ("loss", 0.0125)]),
        ("Accuracy: 9000/10000 (90.5%)", [("accuracy", 9000.0), ("accuracy", 10000.0), ("accuracy", 90.5)]),
        ("{'eval_loss': '1.45', 'f1': -0.5}", [("eval_loss", 1.45), ("f1", -0.5)]),
        ("saved to run_12/model.pt", []),
        ("Prec@1 75.31 Prec@5 92.1", [("prec@1", 75.31), ("prec@5", 92.1)]),
        ("loss in epoch 6: 0.53", [("epoch", 6.0), ("loss", 0.53)]),
        ("the loss after step 40 is 0.53", [("step", 40.0), ("the loss", 0.53)]),
        ("epoch 6: loss 0.53", [("epoch", 6.0), ("loss", 0.53)]),
        ("loss per step 0.53", [("loss per step", 0.53)]),
        ("loss 0.5: 80%|████  | 8/10 [00:01<00:00, 35.21it/s]", [("loss", 0.5)]),
        ("80%|████  | 8/10 [00:01<?, ?it/s, loss=0.53]", [("loss", 0.53)]),
        ("loss 0.5, 35.2 it/s, 12s, 3.1 samples/sec", [("loss", 0.5)]),
        ("accuracy 84.3% of 1.0", [("accuracy", 84.3), ("accuracy", 1.0)]),
        ("nothing", []),
    ],
)
def test_numbers_are_read_with_what_stands_before_them(text: str, found: list[tuple[str, float]]) -> None:
    assert [(each.name, each.value) for each in numbers_in(text)] == found


def test_how_exact_a_number_is() -> None:
    one, two, three = numbers_in("acc 84.3% loss 0.120 count 12")
    assert [round(each.half, 6) for each in (one, two, three)] == [0.05, 0.0005, 0.5]
    assert (one.percent, two.percent) == (True, False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("val acc", "accuracy"), ("rmse", "rmse"), ("test loss", "loss"), ("f1 macro", "f1"), ("seconds", None)],
)
def test_what_a_name_says(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


PARTS = [Part(targets=4, places=4, hits=3, loss=0.5), Part(targets=2, places=2, hits=0, loss=2.0)]


def test_what_an_evaluation_comes_to() -> None:
    found = {(each.kind, str(each.formula)): each.value for each in values(Tally(summed(PARTS)))}
    assert found["accuracy", "3 of 6 targets"] == 0.5
    assert found["loss", "the mean over 6 targets"] == pytest.approx(1.0)
    assert found["perplexity", "the exponential of the mean over 6 targets"] == pytest.approx(math.e)


def test_what_it_comes_to_by_mistake() -> None:
    before = Tally(summed([Part(4, 4, hits=1, loss=3.0), Part(2, 2, hits=1, loss=3.0)]))
    tally = Tally(summed(PARTS), size=4, rows=6, earlier=[before], others=frozenset({30}))
    found = {str(each.formula): each.value for each in mistakes(tally) if each.kind in ("accuracy", "loss")}
    assert found["that of the last batch alone, 0 of its 2"] == 0.0
    assert found["the mean of the accuracies of 2 batches"] == pytest.approx(0.375)
    assert found["hits divided by 8, as if all 2 batches had 4 rows"] == pytest.approx(3 / 8)
    assert found["hits divided by 30, the length of something else"] == pytest.approx(0.1)
    assert found["that of all 2 evaluations together"] in (pytest.approx(5 / 12), pytest.approx(2.0))
    assert found["the batches' means, added up and divided by 6 targets"] == pytest.approx(2.5 / 6)
    assert all(
        each.right in (pytest.approx(0.5), pytest.approx(1.0)) for each in mistakes(tally) if each.kind != "perplexity"
    )


def test_two_classes_have_precision_recall_and_f1() -> None:
    confusion = torch.tensor([[5, 1], [2, 4]]).numpy()
    found = {
        (each.kind, str(each.formula)): each.value
        for each in values(Tally(summed([Part(12, 12, hits=9, confusion=confusion)])))
    }
    assert found["precision", "of class 1"] == pytest.approx(4 / 5)
    assert found["recall", "of class 1"] == pytest.approx(4 / 6)
    assert found["f1", "of class 1"] == pytest.approx(8 / 11)
    assert found["iou", "of class 1"] == pytest.approx(4 / 7)
    assert found["iou", "macro"] == pytest.approx((4 / 7 + 5 / 8) / 2)
    assert found["mcc", "of all classes"] == pytest.approx(18 / math.sqrt(7 * 5 * 6 * 6), rel=1e-6)
    swapped = [
        each for each in mistakes(Tally(summed([Part(12, 12, hits=9, confusion=confusion)]))) if each.group == "name"
    ]
    of_class_1 = {each.kind: each.value for each in swapped if each.formula.of == formula("class", number=1)}
    assert of_class_1 == {"precision": pytest.approx(4 / 6), "recall": pytest.approx(4 / 5)}


def test_values_of_the_last_batch_of_the_evaluation_before_and_of_all() -> None:
    first, last = (torch.tensor(each).numpy() for each in ([[5, 1], [2, 4]], [[1, 2], [0, 3]]))
    parts = [Part(12, 12, hits=9, confusion=first), Part(6, 6, hits=4, confusion=last)]
    tally = Tally(summed(parts), earlier=[Tally(summed(parts[:1]))])
    of_rows = [each for each in mistakes(tally) if each.kind == "precision" and each.group == "rows"]
    found = {str(each.formula): each.value for each in of_rows}
    assert found["that of the last batch alone, of class 1"] == pytest.approx(3 / 5)
    assert found["that of the evaluation before, of class 1"] == pytest.approx(4 / 5)
    assert found["that of all evaluations together, of class 1"] == pytest.approx(11 / 15)
    assert all(each.right == pytest.approx(7 / 10) for each in of_rows if "of class 1" in str(each.formula))


def test_errors_of_the_last_batch() -> None:
    parts = [Part(4, 4, squares=8.0, absolutes=5.0), Part(2, 2, squares=9.0, absolutes=3.0)]
    found = {each.kind: each.value for each in mistakes(Tally(summed(parts))) if each.group == "rows"}
    assert found == {"mse": pytest.approx(4.5), "rmse": pytest.approx(4.5**0.5), "mae": pytest.approx(1.5)}


def test_two_arguments_of_r2_may_change_places() -> None:
    said, true = torch.tensor([1.0, 2.0, 4.0, 5.0]), torch.tensor([1.0, 3.0, 3.0, 6.0])
    off = (said - true).square().sum().item()
    totals = (true.sum().item(), true.square().sum().item())
    part = Part(4, 4, squares=off, totals=totals, predicted=(said.sum().item(), said.square().sum().item()))
    right = {each.kind: each.value for each in values(Tally(summed([part])))}["r2"]
    swapped = {each.kind: each.value for each in mistakes(Tally(summed([part])))}["r2"]
    assert right == pytest.approx(1 - off / (true - true.mean()).square().sum().item())
    assert swapped == pytest.approx(1 - off / (said - said.mean()).square().sum().item())


SPECIAL: dict[str, Callable[[float, float], object]] = {
    "| epoch | accuracy |": lambda micro, macro: print(f"| {1:5d} | {micro:.6f} |"),
    "epoch  accuracy": lambda micro, macro: print(f"{1:5d} {micro:.6f}"),
    "macro": lambda micro, macro: print(f"macro f1 {macro:.6f}"),
    "micro as macro": lambda micro, macro: print(f"macro f1 {micro:.6f}"),
}


@pytest.mark.parametrize("how", SPECIAL)
def test_columns_and_averages_are_known_by_their_names(how: str) -> None:
    torch.manual_seed(0)
    rows, labels = torch.randn(97, 4), torch.randint(3, (97,))
    model = nn.Linear(4, 3)
    with describing() as found, torch.no_grad():
        print(how)
        taken = torch.cat([model(x).argmax(1) for x, _ in DataLoader(TensorDataset(rows, labels), 20)])
        hits = torch.tensor([int(((taken == c) & (labels == c)).sum()) for c in range(3)])
        f1 = 2 * hits / torch.tensor([int((taken == c).sum() + (labels == c).sum()) for c in range(3)])
        SPECIAL[how](int(hits.sum()) / 97, float(f1.mean()))
    of = {
        key: value
        for key, value in found.facts.items()
        if key.startswith("metric.reported") and key.endswith("by_bits")
    }
    (by,) = of.values()
    assert by == {"macro": "macro", "micro as macro": "unknown"}.get(how, "share:hits")


class Unsaid(float):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


def test_what_cannot_be_said_is_left_to_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.Logger("of a script")
    logger.addHandler(logging.StreamHandler())
    with watch(raise_errors=False) as watched:
        run("right", epochs=1)
        logger.warning("accuracy %d", "none")  # logging says so itself
        with pytest.raises(RuntimeError, match="nothing to say"):
            print(Unsaid(0.5))
        run("right", epochs=1)
    assert watched.broken is None
    assert "Logging error" in capsys.readouterr().err


LOGS: dict[str, Callable[[float], object]] = {
    "logging": lambda value: logging.getLogger("of a script").warning("accuracy %.4f", value),
    "tqdm": lambda value: tqdm(range(1), disable=True).set_postfix(accuracy=value),
    "write": lambda value: tqdm.write(f"accuracy {value:.4f}"),
}


def _in_file(value: float) -> None:
    json.dump({"epochs": 3, "accuracy": value}, io.StringIO())


def _in_table(value: float) -> None:
    csv.DictWriter(io.StringIO(), ["accuracy"]).writerow({"accuracy": value})


LOGS |= {
    "a dictionary": lambda value: print({"accuracy": value}),
    "JSON": _in_file,
    "CSV": _in_table,
}


@pytest.mark.parametrize("how", LOGS)
def test_where_numbers_are_reported(how: str) -> None:
    rows, labels = torch.randn(50, 4), torch.randint(2, (50,))
    model = nn.Linear(4, 2)
    with describing() as found, torch.no_grad():
        right = sum(int((model(x).argmax(1) == y).sum()) for x, y in DataLoader(TensorDataset(rows, labels), 20))
        LOGS[how](right / 50)
    assert found.facts["metric.reported.accuracy.by_bits"] == "share:hits"


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layer(images)
        return logits


def test_masks_have_a_class_for_each_pixel() -> None:
    torch.manual_seed(0)
    images, masks = torch.randn(9, 1, 6, 5), torch.randint(2, (9, 6, 5))
    model = Segmenter()
    with describing() as found, torch.no_grad():
        taken = torch.cat([model(x).argmax(1) for x, _ in DataLoader(TensorDataset(images, masks), 4)])
        both = int(((taken == 1) & (masks == 1)).sum())
        print(f"IoU {both / int(((taken == 1) | (masks == 1)).sum()):.5f}")
    assert found.facts["metric.reported.iou.by_bits"] == "class"


def test_one_of_the_five_likeliest() -> None:
    torch.manual_seed(0)
    rows, labels, model = torch.randn(97, 4), torch.randint(9, (97,)), nn.Linear(4, 9)
    with describing() as found, torch.no_grad():
        hits = sum(
            int((model(x).topk(5).indices == y[:, None]).any(1).sum())
            for x, y in DataLoader(TensorDataset(rows, labels), 20)
        )
        print(f"acc@5 {hits / 97:.4f}")
    (by,) = [value for key, value in found.facts.items() if key.endswith("by_bits") and "reported" in key]
    assert by == "share:among_five"


class Run:
    def log(self, values: dict[str, float], step: int | None = None) -> None: ...


class MlflowClient:
    def log_metric(self, run_id: str, key: str, value: float) -> None: ...

    def log_batch(self, run_id: str, metrics: Sequence[SimpleNamespace] = ()) -> None: ...


TRACKERS: dict[str, tuple[str, type, Callable[[Any, float], object]]] = {
    "W&B": ("wandb.sdk.wandb_run", Run, lambda to, value: to.log({"accuracy": value})),
    "trackio": ("trackio.run", Run, lambda to, value: to.log({"accuracy": value}, step=1)),
    "MLflow": ("mlflow.tracking.client", MlflowClient, lambda to, value: to.log_metric("1", "accuracy", value)),
    "MLflow, several": (
        "mlflow.tracking.client",
        MlflowClient,
        lambda to, value: to.log_batch("1", metrics=[SimpleNamespace(key="accuracy", value=value)]),
    ),
}


@pytest.mark.parametrize("tracker", TRACKERS)
def test_what_trackers_are_told(tracker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their classes by name: they are not installed here."""
    name, owner, tell = TRACKERS[tracker]
    module = ModuleType(name)
    setattr(module, owner.__name__, type(owner.__name__, (), dict(vars(owner))))
    monkeypatch.setitem(sys.modules, name, module)
    rows, labels, model = torch.randn(50, 4), torch.randint(2, (50,)), nn.Linear(4, 2)
    with describing() as found, torch.no_grad():
        right = sum(int((model(x).argmax(1) == y).sum()) for x, y in DataLoader(TensorDataset(rows, labels), 20))
        tell(getattr(module, owner.__name__)(), right / 50)
    assert found.facts["metric.reported.accuracy.by_bits"] == "share:hits"


def test_a_table_at_the_end_has_a_row_for_each_evaluation() -> None:
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(97, 4), torch.randint(3, (97,))), 20)
    model = nn.Linear(4, 3)
    with describing() as found, torch.no_grad():
        shares = []
        for _ in range(3):
            model.weight.normal_()
            shares.append(sum(int((model(x).argmax(1) == y).sum()) for x, y in loader) / 97)
        for number, share in enumerate(shares):
            print(f"epoch {number} accuracy {share:.4f}")
    assert found.facts["metric.reported.accuracy.by_bits"] == "share:hits"


@pytest.mark.parametrize("within", [False, True])
def test_rows_of_no_loader_are_counted_after_a_pass_that_trained(within: bool) -> None:
    """Within the pass, the batch at hand is the one that is trained on, and nothing is known of other rows."""
    torch.manual_seed(0)
    rows, labels, model = torch.randn(137, 4), torch.randint(2, (137,)), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def score() -> None:
        with torch.no_grad():
            print(f"accuracy {(model(rows[40:]).argmax(-1) == labels[40:]).float().mean():.4f}")

    with describing() as found:
        for x, y in DataLoader(TensorDataset(rows[:40], labels[:40]), 20):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            if within:
                score()
        score()
    known = [value for key, value in found.facts.items() if key.endswith("by_bits")]
    assert known == ["unknown" if within else "share:agrees"]


def _of_three_evaluations(how: str) -> str:
    """By which formula a number is explained that is reported after three evaluations of 40 rows in batches of 10."""
    torch.manual_seed(3)
    rows, labels, model = torch.randn(60, 4), torch.randint(2, (60,)), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with describing() as found:
        losses, hits = [], 0
        for _ in range(3):
            optimizer.zero_grad()
            functional.cross_entropy(model(rows[40:]), labels[40:]).backward()
            optimizer.step()
            total, hits = 0.0, 0
            with torch.no_grad():
                for place in range(0, 40, 1 if how == "row by row" else 10):
                    if how == "row by row":
                        hits += int(model(rows[place]).argmax() == labels[place])
                        continue
                    said, true = model(rows[place : place + 10]), labels[place : place + 10]
                    total += float(functional.cross_entropy(said, true, reduction="sum"))
                    hits += int((said.argmax(1) == true).sum())
            losses.append(total / 40)
        print(f"best_loss {max(losses):.4f}" if how == "best" else f"accuracy {hits / 40:.3f}")
    return " ".join(str(found).split())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("best", "it is the highest of 3 evaluations, each the mean over 40 targets"),
        ("batches", "of 40 targets"),  # and not of the ten of a batch that has the same share
        ("row by row", "of 40 numbers that were compared"),
    ],
)
def test_a_number_is_explained_by_the_whole_evaluation(how: str, said: str) -> None:
    assert said in _of_three_evaluations(how)


@pytest.mark.parametrize(
    ("factor", "said"), [(4, "of the latest batch, as the loss function gave it"), (1, "of the latest")]
)
def test_a_loss_that_is_divided_for_accumulation_is_known_as_it_was(factor: int, said: str) -> None:
    torch.manual_seed(0)
    rows, labels, model = torch.randn(64, 4), torch.randint(2, (64,)), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with describing() as found:
        for place in range(0, 64, 8):
            loss = functional.cross_entropy(model(rows[place : place + 8]), labels[place : place + 8]) / factor
            loss.backward()
            if place % 32 == 24:
                optimizer.step()
                optimizer.zero_grad()
                print(f"loss {factor * float(loss):.5f}")
    text = " ".join(str(found).split())
    assert f"it is the training loss {said}" in text
    assert ("as means over the targets" in text) == (factor == 4)


@pytest.mark.parametrize("name", ["validation accuracy", "train accuracy"])
def test_accuracy_of_the_training_under_another_name(name: str) -> None:
    torch.manual_seed(0)
    rows, labels = torch.randn(330, 6), torch.randint(2, (330,))
    train = DataLoader(TensorDataset(rows[:199], labels[:199]), batch_size=25)
    unseen = DataLoader(TensorDataset(rows[199:], labels[199:]), batch_size=30)
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(select=["metrics::of-other-rows"], raise_errors=False) as watched:
        for _ in range(4):
            hits = 0
            for x, y in train:
                said = model(x)
                hits += int((said.argmax(1) == y).sum())
                optimizer.zero_grad()
                functional.cross_entropy(said, y).backward()
                optimizer.step()
            with torch.no_grad():
                for x, _ in unseen:
                    model(x)
            print(f"{name} {hits / 199:.4f}")
    found = [each.observed for each in watched.all_findings]
    assert (len(found) == 1 and "training rows" in found[0]) if name == "validation accuracy" else not found


def _classes(logits: torch.Tensor, how: str) -> torch.Tensor:
    return (logits > (0.5 if how == "threshold" else 0.0)).long().squeeze(1)


@pytest.mark.parametrize("how", ["threshold", "right"])
def test_a_threshold_for_probabilities_on_logits(how: str) -> None:
    torch.manual_seed(0)
    rows, labels = torch.randn(97, 4), torch.randint(2, (97,)).float()
    loader, model = DataLoader(TensorDataset(rows, labels), 20), nn.Linear(4, 1)
    with watch(select=["metrics::other-than-named"], raise_errors=False, must_train=False) as watched, torch.no_grad():
        for _ in range(4):
            model.weight.normal_()
            hits = sum(int((_classes(model(x), how) == y).sum()) for x, y in loader)
            print(f"accuracy {hits / 97:.5f}")
    found = [each.observed for each in watched.all_findings]
    assert (len(found) == 1 and "a threshold of 0.5" in found[0]) if how == "threshold" else not found


def test_the_likeliest_of_the_wrong_axis() -> None:
    torch.manual_seed(0)
    rows, labels = torch.randn(50, 5, 4), torch.randint(5, (50, 5))
    loader, model = DataLoader(TensorDataset(rows, labels), 20), nn.Linear(4, 5)
    with watch(select=["metrics::other-than-named"], raise_errors=False) as watched, torch.no_grad():
        for _ in range(3):
            model.weight.normal_()
            print(f"accuracy {sum(int((model(x).argmax(1) == y).sum()) for x, y in loader) / 250:.5f}")
    assert ["argmax over places" in each.observed for each in watched.all_findings] == [True]


def regress(keep: Callable[[float, float, int], bool], path: str | None, said: Sequence[float]) -> list[str]:
    """A state is kept after evaluations; what is reported of them."""
    torch.manual_seed(0)
    model, kept = nn.Linear(3, 1), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(select=["saved::best-is-worst"], raise_errors=False) as watched:
        best = None
        for epoch, value in enumerate([*said, 0.0]):
            functional.mse_loss(model(torch.randn(8, 3)), torch.randn(8, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
            print(f"{'score' if path == 'unnamed' else 'validation mse'} {value:.4f}")
            if best is None or keep(value, best, epoch):
                best = value
                if path is None or path == "unnamed":
                    kept.append(copy.deepcopy(model.state_dict()))
                else:
                    torch.save(model.state_dict(), path)
    return [each.observed for each in watched.all_findings]


@pytest.mark.parametrize(
    ("keep", "name", "said", "found"),
    [
        ("larger", None, [0.5, 0.4, 0.6, 0.3, 0.2], True),
        ("smaller", None, [0.5, 0.4, 0.6, 0.3, 0.2], False),
        ("smaller", None, [0.5, 0.4, 0.4, 0.3, 0.6], False),
        ("larger", None, [0.6, 0.5, 0.4, 0.3, 0.2], True),
        ("larger", "best.pt", [0.6, 0.5, 0.4, 0.3, 0.2], True),
        ("tenth", "0.pt", [0.6, 0.5, 0.4, 0.3, 0.2], False),
        ("always", None, [0.2, 0.3, 0.4, 0.5, 0.6], False),
        ("larger", None, [0.5, 0.4, 0.6], False),
        ("larger", "unnamed", [0.5, 0.4, 0.6, 0.3, 0.2], False),
    ],
)
def test_which_evaluation_a_state_is_kept_after(
    keep: str, name: str | None, said: list[float], found: bool, tmp_path: Path
) -> None:
    how: dict[str, Callable[[float, float, int], bool]] = {
        "larger": lambda value, best, epoch: value > best,
        "smaller": lambda value, best, epoch: value < best,
        "tenth": lambda value, best, epoch: epoch % 10 == 0,
        "always": lambda value, best, epoch: True,
    }
    told = regress(how[keep], name if name in (None, "unnamed") else str(tmp_path / name), said)
    assert told == ["the script keeps the state after each evaluation with the largest validation mse so far"] * found


def run(how: str, epochs: int = 5) -> None:
    torch.manual_seed(1)
    rows = torch.randn(330, 6)
    labels = (rows[:, :2].sum(1) + torch.randn(330) > 0).long()
    train = DataLoader(TensorDataset(rows[:200], labels[:200]), batch_size=25, shuffle=True)
    unseen = DataLoader(TensorDataset(rows[200:], labels[200:]), batch_size=30)
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(epochs):
        for x, y in train:
            optimizer.zero_grad()
            said = model(x)
            functional.cross_entropy(said, y).backward()
            optimizer.step()
        trained = float((said.argmax(1) == y).float().mean())
        hits, total = 0, 0.0
        with torch.no_grad():
            for x, y in unseen:
                said = model(x)
                hits += int((said.argmax(1) == y).sum())
                total += float(functional.cross_entropy(said, y)) * (1 if how == "loss of the rows" else len(y))
        if how == "last batch":
            print(f"val acc {float((said.argmax(1) == y).float().mean()):.4f}")
            continue
        if how == "batch of the training":
            print(f"acc {trained:.4f}")
            continue
        rows_of = {"length of the other": 200, "whole batches": 30 * len(unseen)}.get(how, 130)
        if how == "other name":
            print(f"train accuracy {hits / 200:.4f}")
        else:
            print(f"accuracy {hits / rows_of:.4f} loss {total / 130:.5f}")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("right", None),
        ("other name", None),
        ("length of the other", "hits divided by 200, the length of something else"),
        ("whole batches", "hits divided by 150, as if all 5 batches had 30 rows"),
        ("loss of the rows", "the batches' means, added up and divided by 130 targets"),
    ],
)
def test_a_number_that_only_a_mistake_gives_is_found(how: str, said: str | None) -> None:
    with watch(select=["metrics::of-other-rows"], raise_errors=False) as watched:
        run(how)
    found = [each.observed for each in watched.all_findings]
    assert (len(found) == 1 and said in found[0]) if said else not found
    assert bool(watched.looked) == (how != "other name")


SIZES = {"full": [16] * 7, "short": [16] * 6 + [11]}

HITS = {"full": [[12, 9, 13, 12, 11, 12, k] for k in (10, 11, 14)], "short": [[12, 9, 13, 12, 11, 12, 8]] * 3}


def rounds(
    sizes: str, said: Callable[[list[int], list[int]], float], times: int = 3, **known: Any
) -> list[NumberReported]:
    """What comes of an accuracy that is reported after each of some evaluations, by hand."""
    place, earlier, name = NumberSeries("val acc", "train.py:9"), list[Tally](), known.pop("name", "val acc")
    place.name = name
    for hits in HITS[sizes][:times]:
        of = SIZES[sizes]
        tally = Tally(
            summed([Part(n, n, hits=k) for k, n in zip(hits, of, strict=True)]), 16, sum(of), True, [*earlier]
        )
        earlier.append(tally)
        (number,) = numbers_in(f"{name} {said(hits, of):.4f}")
        more: dict[str, Any] = {"fresh": True, "hits": True} | known
        place.rounds.append(judged(number, Known([*values(tally)], [], [*mistakes(tally)], True, **more)))
    told = outcome(place, keys_of_mistakes([place]))
    return [] if told is None or told.mistake is None else [told]


def last_batch(hits: list[int], of: list[int]) -> float:
    return hits[-1] / of[-1]


def test_an_accuracy_of_the_last_batch_in_three_reports() -> None:
    assert [str(each.mistake) for each in rounds("full", last_batch)] == ["that of the last batch alone, 14 of its 16"]
    assert [str(each.mistake) for each in rounds("short", last_batch, 2)] == [
        "that of the last batch alone, 8 of its 11"
    ]
    assert not rounds("full", last_batch, 2)
    assert not rounds("short", last_batch, 1), "other rows may be as many once"


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(
    "said",
    [
        lambda hits, of: sum(hits) / sum(of),
        lambda hits, of: hits[0] / of[0],
        lambda hits, of: sum(k / n for k, n in zip(hits, of, strict=True)) / len(of),
        lambda hits, of: sum(hits[-2:]) / sum(of[-2:]),
        lambda hits, of: 0.75,
    ],
)
def test_another_accuracy_is_not_of_the_last_batch(sizes: str, said: Callable[[list[int], list[int]], float]) -> None:
    assert not any("last batch alone" in str(each.mistake) for each in rounds(sizes, said))


@pytest.mark.parametrize("known", [{"fresh": False}, {"hits": False, "name": "acc"}, {"name": "best acc"}])
def test_an_accuracy_that_may_be_of_the_training_needs_more_reports(known: dict[str, Any]) -> None:
    assert not rounds("full", last_batch, **known)


def test_few_rows_that_are_nearly_all_right_say_little() -> None:
    def steps(*hits: int) -> float:
        tally = Tally(summed([Part(16, 16, hits=k) for k in hits]))
        return next(each.steps for each in mistakes(tally) if each.formula.key == "last-batch")

    assert steps(16, 15, 16, 16) < 1
    assert 3 < steps(12, 11, 12, 12) < 6
    assert steps(12, 11, 12, 1) == pytest.approx(16)


def test_loss_and_accuracy_of_the_last_batch_are_evidence_together() -> None:
    parts = [Part(16, 16, hits=12, loss=0.51), Part(16, 16, hits=11, loss=0.62), Part(16, 16, hits=10, loss=0.58)]
    tally = Tally(summed(parts), 16, 48)
    places = [NumberSeries("val loss", "train.py:9"), NumberSeries("val acc", "train.py:9")]
    for place, number in zip(places, numbers_in("val loss 0.5800 val acc 0.6250"), strict=True):
        known = Known([*values(tally)], [], [*mistakes(tally)], True, fresh=True)
        place.rounds.append(judged(number, known))
    assert keys_of_mistakes(places) == {"last-batch", "last-batch-loss"}
    assert keys_of_mistakes(places[1:]) == set()


@pytest.mark.parametrize(("how", "epochs", "said"), [("last batch", 3, True), ("last batch", 1, False)])
def test_the_last_batch_alone(how: str, epochs: int, said: bool) -> None:
    with watch(select=["metrics::of-other-rows"], raise_errors=False) as watched:
        run(how, epochs)
    assert ["last batch alone, " in each.observed for each in watched.all_findings] == [True] * said


def test_the_accuracy_of_the_latest_batch_that_was_trained_on() -> None:
    with describing() as found:
        run("batch of the training", 3)
    assert found.facts["metric.reported.acc.by_bits"] == "training-hits:batch"


def test_numbers_of_one_line_are_evidence_together() -> None:
    """Once, and each of few digits: three metrics that are means of the batches' values are no chance."""
    torch.manual_seed(0)
    rows = torch.randn(90, 4)
    labels = (rows[:, 0] + 0.5 * torch.randn(90) > 1).long()
    unseen, model = DataLoader(TensorDataset(rows, labels), batch_size=9), nn.Linear(4, 2)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0, 0.0, 0.0, 0.0], [3.0, 0.5, 0.0, 0.0]]))
        model.bias.copy_(torch.tensor([2.0, 0.0]))
    found: list[tuple[float, float, float]] = []
    with watch(select=["metrics::mean-of-batches"], raise_errors=False) as watched, torch.no_grad():
        for x, y in unseen:
            taken = model(x).argmax(1)
            hits = int((taken * y).sum())
            precision, recall = hits / max(1, int(taken.sum())), hits / max(1, int(y.sum()))
            found.append((precision, recall, 2 * hits / max(1, int(taken.sum() + y.sum()))))
        one, two, three = (sum(each) / len(found) for each in zip(*found, strict=True))
        print(f"precision {one:.4f} recall {two:.4f} f1 {three:.4f}")
    (finding,) = watched.all_findings
    assert "the mean of 10 batches' values, of class 1" in finding.observed


def test_what_two_epochs_show_may_be_chance() -> None:
    with watch(select=["metrics::of-other-rows"], raise_errors=False) as watched:
        run("whole batches", epochs=2)
    assert not watched.all_findings


def test_a_page_says_by_which_formula_a_number_comes() -> None:
    with describing() as found:
        run("right")
    page = " ".join(str(found).split())
    assert "of 130 targets" in page
    assert "it is the mean over 130 targets" in page
    assert found.facts["metric.reported.accuracy.by_bits"] in ("share:hits", "share:agrees")
    with describing() as found:
        run("loss of the rows")
    assert found.facts["metric.reported.loss.by_bits"] == "means-by-targets"


def test_a_training_loss_that_is_printed_and_logged_is_the_mean_since_the_time_before() -> None:
    torch.manual_seed(0)
    rows, labels = torch.randn(96, 6), torch.randint(2, (96,))
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with describing() as found:
        total = in_all = 0.0
        for number, (x, y) in enumerate(DataLoader(TensorDataset(rows, labels), batch_size=8), start=1):
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, in_all = total + loss.item(), in_all + loss.item()
            if number % 4 == 0:
                for digits in (4, 12):
                    print(f"loss {total / 4:.{digits}f}")
                total = 0.0
        print(f"train_loss {in_all / 12:.8f}")
    assert found.facts["metric.reported.loss.by_bits"] == "training-mean:report"
    assert str(found.facts["metric.reported.train_loss.by_bits"]).startswith("training-mean:")
