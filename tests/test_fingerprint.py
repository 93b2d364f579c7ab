"""What a fingerprint says, of a machine with a GPU too: a stand-in plays torch's part."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness import fingerprint
from harness.baseline.files import hardware_class
from harness.recipe import Recipe
from harness.run import run_recipe


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch answers on a machine with an H200."""
    answers: dict[str, Any] = {
        "is_available": True,
        "get_device_name": "NVIDIA H200",
        "get_device_capability": (9, 0),
        "device_count": 1,
        "get_device_properties": SimpleNamespace(total_memory=150_000_000_000),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(fingerprint, "gpu_driver", lambda: "580.65.06")


@pytest.mark.usefixtures("gpu")
def test_a_gpu_is_named_with_driver_and_precision() -> None:
    found = fingerprint.fingerprint()
    assert hardware_class(found) == "nvidia-h200"
    assert found["gpu"]["driver"] == "580.65.06"
    assert found["gpu"]["capability"] == [9, 0]
    assert found["fp32_precision"].keys() == {"matmul", "cpu"}


@pytest.mark.usefixtures("gpu")
def test_a_run_on_the_cpu_is_one_where_there_is_a_gpu_too() -> None:
    found = fingerprint.fingerprint("cpu")
    assert (found["device"], found["device_name"], found["gpu"]) == ("cpu", None, None)
    assert hardware_class(found) == "cpu"


def test_a_run_names_the_device_that_it_used(small: Recipe) -> None:
    assert run_recipe(small, until="model").fingerprint["device"] == "cpu" or torch.cuda.is_available()


def test_a_precision_that_was_set_is_told() -> None:
    """torch refuses to name its global setting once a backend has its own; the fingerprint asks the backends."""
    matmul: Any = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("torch before 2.9 has one setting for all backends")
    before = fingerprint.fingerprint()["fp32_precision"]
    matmul.fp32_precision = "tf32"
    try:
        assert fingerprint.fingerprint()["fp32_precision"] == before | {"matmul": "tf32"} != before
    finally:
        matmul.fp32_precision = before["matmul"]


def test_the_driver_is_none_where_nothing_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(subprocess, "run", missing)
    assert fingerprint.gpu_driver() is None
