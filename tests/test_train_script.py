"""train.py, started in the four ways that the document and Accelerate know."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.examples import train

pytestmark = [pytest.mark.distributed, pytest.mark.slow]

BIN = Path(sys.executable).parent


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return str(found.getsockname()[1])


@pytest.fixture(scope="module")
def started(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All four at once: most of what they do is importing."""
    assert train.__file__ is not None
    home = tmp_path_factory.mktemp("home")
    environment = os.environ | {"HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    script = [train.__file__, "--data", str(small_data), "--epochs", "1"]
    cell = (
        "from accelerate import notebook_launcher\n"
        "from harness.examples.train import training_function\n"
        f"notebook_launcher(training_function, ('tiny', {str(small_data)!r}, 1), num_processes=2, "
        f"use_port={free_port()!r})"
    )
    subprocess.run([BIN / "accelerate", "config", "default"], check=True, env=environment)
    assert (home / "accelerate" / "default_config.yaml").is_file()
    on_cpus = {"ACCELERATE_USE_CPU": "true", "PET_MASTER_PORT": free_port()}
    processes = {
        name: subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home, env=environment | more
        )
        for name, command, more in (
            ("python", [sys.executable, *script], {}),
            ("accelerate launch", [BIN / "accelerate", "launch", *script], {}),
            ("torchrun", [BIN / "torchrun", "--nproc-per-node", "2", *script], on_cpus),
            ("notebook_launcher", [sys.executable, "-c", cell], on_cpus),
        )
    }
    yield processes
    for process in processes.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("launched", "processes", "updates"),
    [("python", 1, 8), ("accelerate launch", 1, 8), ("torchrun", 2, 4), ("notebook_launcher", 2, 4)],
)
def test_train(started: dict[str, subprocess.Popen[str]], launched: str, processes: int, updates: int) -> None:
    printed, errors = started[launched].communicate(timeout=300)
    assert started[launched].returncode == 0, errors
    counted = json.loads(printed.splitlines()[-1])
    assert (counted["processes"], counted["updates"], counted["lr"]) == (processes, updates, 0.0)
    assert 0 <= counted["accuracy"] <= 1
    assert 0 <= counted["f1"] <= 1
