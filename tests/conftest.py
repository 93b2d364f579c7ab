"""Fixtures for the harness's own tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from harness.documented_run.recipe import RECIPES, Recipe

if TYPE_CHECKING:
    from tests.benchmarks.throughput_fixture import Keeper

SMALL_ROWS = {"train": 60, "validation": 20, "test": 10}
"""Enough for several batches, the last one smaller, and two epochs in a second."""

LAUNCHERS_VARIABLES = (
    "WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
    "ACCELERATE_MIXED_PRECISION", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _environment() -> Iterator[None]:
    """Without what a cluster or a launcher set: this is one process, and computes in float32."""
    with pytest.MonkeyPatch.context() as patch:
        for name in LAUNCHERS_VARIABLES:
            patch.delenv(name, raising=False)
        yield


Shared = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Call it with a name and what makes a folder: the first worker that asks makes it, and all have it."""
    workers = tmp_path_factory.getbasetemp()
    workers = workers.parent if "PYTEST_XDIST_WORKER" in os.environ else workers

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made = workers / f"shared-{name}"
        with FileLock(f"{made}.lock"):
            if not made.exists():
                making = made.with_suffix(".making")
                shutil.rmtree(making, ignore_errors=True)  # of one that failed
                make(making)
                making.rename(made)
        return made

    return folder


@pytest.fixture(scope="session")
def small_data(shared: Shared) -> Path:
    """A folder with a small corpus, as save_to_disk writes it."""
    from scripts import corpus

    return shared("data", lambda folder: corpus.raw_datasets(seed=7, split_rows=SMALL_ROWS).save_to_disk(str(folder)))


@pytest.fixture(scope="session")
def small(small_data: Path) -> Recipe:
    """A recipe on the small corpus: the same steps, 16 updates."""
    return RECIPES["tiny"].with_(name="small", dataset="tests/small", data=str(small_data), epochs=2)


@pytest.fixture(scope="session")
def small_run(small: Recipe, shared: Shared) -> Callable[[str], Path]:
    """The folder of a whole small run in a loop, made for the first who asks; nobody changes what is in it."""
    from harness.documented_run.run import run_recipe

    return lambda loop: shared(f"run-{loop}", lambda folder: run_recipe(small.with_(loop=loop), output=folder))


def _given_folder(config: pytest.Config, option: str, variable: str) -> Path:
    value = config.getoption(option) or config.getini(option) or os.environ.get(variable)
    if not value:
        pytest.skip(f"needs {variable} or --{option.replace('_', '-')}")
    return Path(value)


@pytest.fixture(scope="session")
def mrpc(pytestconfig: pytest.Config) -> Path:
    """The folder with the real corpus."""
    return _given_folder(pytestconfig, "harness_data", "HARNESS_DATA")


@pytest.fixture(scope="session")
def bert_base(pytestconfig: pytest.Config) -> Path:
    """A folder with bert-base-uncased's tokenizer, with or without weights."""
    return _given_folder(pytestconfig, "harness_checkpoint", "HARNESS_CHECKPOINT")


@pytest.fixture
def benchmark(benchmark: Any, pytestconfig: pytest.Config) -> Any:
    """pytest-benchmark's, which runs the code once where no option of it asks for the clock."""
    from tests.benchmarks.throughput_fixture import measures

    benchmark.disabled = benchmark.disabled or not measures(pytestconfig)
    return benchmark


@pytest.fixture
def throughput(benchmark: Any, request: pytest.FixtureRequest) -> Keeper:
    """Call it with what a benchmark came to: it is compared with the baseline of this hardware, or recorded."""
    from tests.benchmarks.recorded import RECORDS
    from tests.benchmarks.throughput_fixture import Keeper

    config = request.config
    update = config.getoption("harness_update")
    if update and benchmark.disabled:
        request.node.warn(pytest.PytestWarning("nothing is recorded: benchmarks are timed with --benchmark-only"))
    return Keeper(benchmark, request.node.warn, RECORDS, update, not benchmark.disabled)
