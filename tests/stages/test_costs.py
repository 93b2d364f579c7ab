"""What is measured beside the run, where the mutants do not reach."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import get_scheduler

from harness.documented_run.recipe import Recipe
from harness.documented_run.stages import Run, costs, model, schedule
from harness.documented_run.stages.measures import compiled, memory
from harness.documented_run.stages.measures.results import Costs
from harness.findings import NotApplicable


def test_graph_for_each_shape() -> None:
    narrow, wide = torch.zeros(2, 3), torch.zeros(2, 4)
    assert compiled.graphs(torch.nn.ReLU(), [narrow, narrow, wide, narrow, wide]) == [1, 1, 2, 2, 2]


class _Keeps(torch.nn.Module):
    """y = (wx)^2: the square keeps wx for the backward pass, 4 bytes a number."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.weight * x) ** 2


def test_bytes_that_a_graph_keeps() -> None:
    batch = {"x": torch.zeros(100)}
    assert memory.kept(_Keeps(), batch, torch.enable_grad()) == 400
    assert memory.kept(_Keeps(), batch, torch.no_grad()) == 0


def test_mode_is_put_back() -> None:
    trained = _Keeps().train()
    memory.kept(trained, {"x": torch.zeros(1)}, torch.no_grad())
    assert trained.training


def test_a_reader_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROWS", 1000)
    monkeypatch.setattr(memory, "READER", "nowhere.py")
    with memory.readers() as readers, pytest.raises(RuntimeError, match=r"reading it mapped failed: .*nowhere\.py"):
        readers.resident()
    assert all(process.poll() is not None for process in readers.processes.values())


def test_readers_are_ended_with_their_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROWS", 1000)

    def fails_meanwhile() -> None:
        with memory.readers() as readers:
            started.extend(readers.processes.values())
            raise KeyboardInterrupt

    started: list[subprocess.Popen[str]] = []
    with pytest.raises(KeyboardInterrupt):
        fails_meanwhile()
    assert started
    assert all(process.poll() is not None for process in started)


def test_what_cannot_be_compiled_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*args: Any, **options: Any) -> None:
        raise RuntimeError("Dynamo is not supported on this Python\nmore")

    monkeypatch.setattr(torch, "compile", refuses)
    ids = [torch.zeros(8, width, dtype=torch.long) for width in (3, 4)]
    run: Any = SimpleNamespace(
        eval_dataloader=[{"input_ids": each} for each in ids],
        recipe=Recipe(),
        device=torch.device("cpu"),
        tokenizer=SimpleNamespace(pad_token_id=0),
        model=SimpleNamespace(base_model=SimpleNamespace(embeddings=torch.nn.Embedding(2, 2))),
        costs=Costs(),
    )
    costs.measure_graphs(run)
    with pytest.raises(NotApplicable, match=r"^torch\.compile: RuntimeError: Dynamo is not supported on this Python$"):
        list(costs.one_width_is_compiled_once.function(run))


@pytest.fixture
def library() -> Iterator[logging.Logger]:
    logger = logging.getLogger("some_library")
    yield logger
    logger.setLevel(logging.NOTSET)
    logger.handlers.clear()


def test_messages_are_heard_and_no_more_is_shown(
    library: logging.Logger, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    library.setLevel(logging.WARNING)
    shows = logging.StreamHandler()
    library.addHandler(shows)
    with model.logged("some_library") as messages:
        logging.getLogger("some_library.part").info("not used")
        logging.getLogger("some_library.part").warning("newly initialized")
    assert messages == ["not used", "newly initialized"]
    assert capsys.readouterr().err == "newly initialized\n"
    assert caplog.messages == ["newly initialized"]
    assert (library.level, library.handlers, library.propagate) == (logging.WARNING, [shows], True)
    assert shows.level == logging.NOTSET


def test_the_librarys_own_warmup_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe without a warmup has the library's looked at all the same."""
    run: Any = Run(Recipe())
    run.num_training_steps = 100
    assert list(schedule.warms_up_linearly.function(run)) == []
    monkeypatch.setattr(
        schedule,
        "get_scheduler",
        lambda name, optimizer, num_warmup_steps, num_training_steps: get_scheduler(
            name, optimizer, num_warmup_steps=num_warmup_steps - 1, num_training_steps=num_training_steps
        ),
    )
    (found,) = schedule.warms_up_linearly.function(run)
    assert (found.expected, found.observed) == ("5e-06", "5.55556e-06")
