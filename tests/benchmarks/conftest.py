"""What the benchmarks are about: the built-in recipe on a CPU, bert-base on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from harness.documented_run.recipe import RECIPES
from harness.pytest_plugin import with_options
from tests.benchmarks.contention import busy
from tests.benchmarks.paired import judged

if TYPE_CHECKING:  # what measures imports torch and transformers: seconds, which collecting need not take
    from harness.documented_run.stages import Run
    from tests.benchmarks.benchmark_loops import Document
    from tests.benchmarks.measure import Device, SideBySide


@dataclass
class Subject:
    run: Run
    document: Document
    device: Device
    weights: str
    """"pretrained", or why they are not."""


@dataclass
class Stopwatch:
    """Times two sides in blocks, through pytest-benchmark, whose statistics and JSON have our side's rounds."""

    benchmark: Any
    config: pytest.Config
    warn: Callable[[Warning], None]

    def __call__(
        self, ours: Callable[[], Any], reference: Callable[[], Any], device: Device, **options: Any
    ) -> SideBySide | None:
        """As :func:`~tests.benchmarks.measure.side_by_side`; without a clock each side is called once."""
        from tests.benchmarks.measure import side_by_side

        def until_done() -> None:
            ours()
            device.synchronize()

        # How many rounds there will be must be told to it before: it makes its statistics of one, and gets the others.
        self.benchmark.pedantic(until_done, rounds=1)
        if self.benchmark.disabled:
            reference()
            return None
        found = side_by_side(ours, reference, device, say=self.say, **options)
        self.benchmark.stats.stats.data[:] = found.ours
        interval = found.interval.model_dump()
        self.benchmark.extra_info.update(found.machine, interval=interval, reference_seconds=found.reference)
        return found

    def say(self, sentence: str) -> None:
        """At once, and not when the tests are through."""
        capture, terminal = map(self.config.pluginmanager.getplugin, ("capturemanager", "terminalreporter"))
        with capture.global_and_fixture_disabled():
            terminal.ensure_newline()
            terminal.write_line(f"{self.benchmark.name}: {sentence}")

    def hold(self, found: SideBySide, limit: float) -> None:
        """Hold what was measured to a limit that does not come from recorded runs.

        Raises:
            pytest.fail.Exception: it is slower.
        """
        __tracebackhide__ = True
        told, says = judged(found.ratio, found.interval, limit, busy(found.machine))
        if told == "slower":
            pytest.fail(says, pytrace=False)
        if told == "cannot tell":
            self.warn(pytest.PytestWarning(says))


@pytest.fixture
def stopwatch(benchmark: Any, request: pytest.FixtureRequest) -> Stopwatch:
    """Call it with two sides and the device."""
    return Stopwatch(benchmark, request.config, request.node.warn)


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def subject(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Subject:
    import torch

    from harness.documented_run.run import quiet_libraries
    from tests.benchmarks.benchmark_loops import Document, bert_base, prepared
    from tests.benchmarks.measure import TorchDevice

    if request.param == "cpu" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU, which is what is measured here: pytest -m gpu")
    quiet_libraries()
    recipe, weights = RECIPES["tiny"], "built in"
    if request.param == "cuda":
        wanted = with_options(RECIPES["bert-base"], pytestconfig).with_(loop="plain")
        recipe, weights = bert_base(wanted, tmp_path_factory.mktemp("random"))
    run = prepared(recipe)
    return Subject(run, Document(run), TorchDevice(run.device), weights)
