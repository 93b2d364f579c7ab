"""The clock, on a stand-in for a GPU: work is queued, and done when somebody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import BertConfig

from harness.compat import fp32_precision
from harness.documented_run.recipe import RECIPES
from harness.documented_run.run import quiet_libraries
from tests.benchmarks import contention
from tests.benchmarks.benchmark_loops import bert_base, prepared
from tests.benchmarks.measure import Laps, content, flops, matmul_peak, peak_memory, side_by_side, timed
from tests.benchmarks.test_precision import variant


class Queue:
    """A device with a clock of its own: calls return at once, waiting for them takes their time."""

    def __init__(self) -> None:
        self.now, self.queued = 0.0, 0.0

    def launch(self, seconds: float) -> None:
        self.now += 0.001  # what it takes to ask
        self.queued += seconds

    def synchronize(self) -> None:
        self.now, self.queued = self.now + self.queued, 0.0


def test_what_is_queued_is_timed_and_what_was_queued_before_is_not() -> None:
    device = Queue()
    device.launch(100)
    assert timed(lambda: device.launch(3), device, clock=lambda: device.now) == pytest.approx(3.001)


class Drift(Queue):
    """A machine that gets slower in proportion to time: what took a second takes 1 % more with each one that passes."""

    def work(self, seconds: float) -> None:
        self.now += seconds * (1 + 0.01 * self.now)


def test_drift_cancels_in_a_block_and_biases_every_other_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "others", dict)
    device = Drift()

    def side(seconds: float) -> Callable[[], None]:
        return lambda: device.work(seconds)

    def clock() -> float:
        return device.now

    same = side_by_side(side(0.1), side(0.1), device, looks=(12,), clock=clock)
    assert same.ratio == pytest.approx(1, abs=1e-5)
    slower = side_by_side(side(0.105), side(0.1), device, looks=(12,), clock=clock)
    assert slower.ratio == pytest.approx(1 / 1.05, abs=1e-4)
    assert slower.interval.told(1.0) == "slower"
    assert (len(slower.ours), len(slower.reference)) == (24, 24)

    first, second = ([timed(side(0.1), device, clock) for _ in range(2)] for _ in range(2))
    in_turns = [(timed(side(0.1), device, clock), timed(side(0.1), device, clock)) for _ in range(24)]
    assert sum(first) / sum(second) < 1 - 1e-3, "one side after the other: the first one seems faster"
    assert median(reference / ours for reference, ours in in_turns) < 1 - 5e-4, "in turns: likewise"
    assert median(reference / ours for ours, reference in in_turns) > 1 + 5e-4, "and the other way round"


def test_a_busy_machine_is_told_of_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "others", lambda: {contention.TAKEN: 0.5})
    device, told = Queue(), []

    def ours() -> None:
        told.append("ours")
        device.launch(1)

    found = side_by_side(ours, ours, device, looks=(12,), say=told.append, clock=lambda: device.now)
    assert told[:2] == ["before anything is timed: the machine was busy, 50% of the CPU taken by others", "ours"]
    assert contention.LOAD in found.machine or contention.TAKEN in found.machine


def test_each_part_is_charged_with_its_own_work() -> None:
    device = Queue()
    device.launch(100)
    laps = Laps(device, clock=lambda: device.now)
    for _ in range(2):
        device.launch(0.999)
        laps.lap("forward")
        device.launch(2.999)
        laps.lap("backward")
    assert laps.seconds == pytest.approx({"forward": 2, "backward": 6})
    assert laps.shares == pytest.approx({"forward": 0.25, "backward": 0.75})


def test_a_product_is_counted_forward_and_backward() -> None:
    rows, inputs, outputs = 16, 32, 8
    layer = torch.nn.Linear(inputs, outputs)
    batch = torch.rand(rows, inputs, requires_grad=True)
    assert flops(lambda: layer(batch).sum().backward()) == 3 * 2 * rows * inputs * outputs


def test_the_peak_is_positive_and_finite() -> None:
    assert 0 < matmul_peak(torch.device("cpu"), repeats=1) < 1e17


def test_padding_is_no_content() -> None:
    batches = [{"attention_mask": torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])}]
    assert content(batches) == {"rows": 2, "tokens": 4, "padding": 0.5}


def test_memory_is_a_figure_of_gpus_only(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = torch.nn.Linear(3, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters())
    assert peak_memory(lambda: None, model, optimizer) == {}
    called: list[str] = []

    def says(name: str, answer: int | None) -> Any:
        called.append(name)
        return answer

    for name, answer in {
        "synchronize": None,
        "reset_peak_memory_stats": None,
        "memory_allocated": 1000,
        "max_memory_allocated": 1700,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, name=name, answer=answer: says(name, answer))
    gpu = torch.device("cuda")
    weight = SimpleNamespace(device=gpu, nbytes=12)
    on_gpu: Any = SimpleNamespace(parameters=lambda: iter([weight]), buffers=lambda: iter([]))
    found = peak_memory(lambda: called.append("call"), on_gpu, optimizer)
    assert found == {"peak_memory_bytes": 12 + 700}
    assert called == [
        "synchronize", "memory_allocated", "reset_peak_memory_stats", "call", "synchronize", "max_memory_allocated",
    ]  # fmt: skip


@pytest.mark.slow
def test_without_weights_bert_base_is_random_and_says_so(tmp_path: Path) -> None:
    quiet_libraries()
    wanted = RECIPES["bert-base"].with_(checkpoint=str(tmp_path / "absent"))
    small = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    recipe, weights = bert_base(wanted, tmp_path / "random", small)
    assert weights.startswith("random: checkpoint folder ")
    assert recipe.name == "bert-base-random"
    run = prepared(recipe)
    assert run.model.config.hidden_size == 32
    assert run.model.config.vocab_size == 30522


def test_with_weights_bert_base_is_what_was_asked_for(tmp_path: Path) -> None:
    assert bert_base(RECIPES["tiny"], tmp_path) == (RECIPES["tiny"], "pretrained")


def test_a_precision_ends_with_its_block() -> None:
    model: Any = torch.nn.Linear(2, 2)
    before = fp32_precision()
    with variant("tf32", model) as called:
        assert called is model
        assert fp32_precision() != before
    with variant("bf16", model) as called:
        assert called(input=torch.rand(1, 2)).dtype == torch.bfloat16
    assert fp32_precision() == before
    assert model(torch.rand(1, 2)).dtype == torch.float32


def test_bf16_sees_every_update() -> None:
    """Autocast round a whole training would go on with the weights that it rounded first."""
    model: Any = torch.nn.Linear(2, 2)
    batch = torch.rand(1, 2)
    with variant("bf16", model) as called:
        before = called(input=batch)
        with torch.no_grad():
            model.weight.add_(1)
        assert not torch.equal(called(input=batch), before)
