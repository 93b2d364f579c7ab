"""What the benchmarks are about: the built-in recipe on a CPU, bert-base on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from harness.pytest_plugin import with_options
from harness.recipe import RECIPES
from harness.run import quiet_libraries
from harness.stages import Run
from tests.benchmarks.benchmark_loops import Document, bert_base, prepared
from tests.benchmarks.measure import Device, TorchDevice, timed


@dataclass
class Subject:
    run: Run
    document: Document
    device: Device
    weights: str
    """"pretrained", or why they are not."""
    reference: list[float] = field(default_factory=list)
    """The seconds of the document's rounds."""

    def clock(self, call: Callable[[], Any]) -> None:
        """Time a round of the document's; a setup of ``benchmark.pedantic``."""
        self.reference.append(timed(call, self.device))


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def prepared_subject(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Subject:
    if request.param == "cpu" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU, which is what is measured here: pytest -m gpu")
    quiet_libraries()
    recipe, weights = RECIPES["tiny"], "built in"
    if request.param == "cuda":
        wanted = with_options(RECIPES["bert-base"], pytestconfig).with_(loop="plain")
        recipe, weights = bert_base(wanted, tmp_path_factory.mktemp("random"))
    run = prepared(recipe)
    return Subject(run, Document(run), TorchDevice(run.device), weights)


@pytest.fixture
def subject(prepared_subject: Subject) -> Subject:
    prepared_subject.reference.clear()
    return prepared_subject
