"""What a fingerprint says, of a machine with a GPU too: a stand-in plays torch's part."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness import fingerprint
from harness.compat import fp32_precision
from harness.documented_run.baseline.files import hardware_class
from harness.documented_run.recipe import Recipe
from harness.documented_run.run import run_record
from harness.documented_run.stages import Run


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


@pytest.mark.usefixtures("gpu")
def test_a_run_names_the_device_that_it_used(small: Recipe) -> None:
    run = Run(small)
    assert run_record(run, [], started="now", interrupted=False).fingerprint["device"] == "cuda", "what it would use"
    run.device = torch.device("cpu")
    assert run_record(run, [], started="now", interrupted=False).fingerprint["device"] == "cpu"


def test_a_precision_that_was_set_is_told() -> None:
    """torch refuses to name its global setting once a backend has its own; the fingerprint asks the backends."""
    matmul: Any = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("torch before 2.9 has one setting for all backends")
    before = fingerprint.fingerprint()["fp32_precision"]
    matmul.fp32_precision = "tf32"
    try:
        assert fingerprint.fingerprint()["fp32_precision"] == before | {"matmul": "tf32"} != before
        matmul.fp32_precision = "ieee"
        assert fingerprint.fingerprint()["fp32_precision"] == before, "set or not set, it is in full"
    finally:
        matmul.fp32_precision = "none"


@pytest.mark.parametrize(
    ("allow_tf32", "precision", "expected"),
    [
        (False, "highest", {"matmul": "ieee", "cpu": "ieee"}),
        (True, "high", {"matmul": "tf32", "cpu": "bf16"}),
    ],
)
def test_precision_before_torch_2_9(
    monkeypatch: pytest.MonkeyPatch, allow_tf32: bool, precision: str, expected: dict[str, str]
) -> None:
    monkeypatch.setattr(torch.backends.cuda, "matmul", SimpleNamespace(allow_tf32=allow_tf32))
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: precision)
    assert fp32_precision() == expected


@pytest.mark.parametrize(
    ("called", "expected"),
    [("bin/pytest", "pytest -q"), ("site/pytest/__main__.py", "pytest -q"), ("site/harness/__main__.py", "harness -q")],
)
def test_the_command_is_named_without_its_folder(monkeypatch: pytest.MonkeyPatch, called: str, expected: str) -> None:
    monkeypatch.setattr(sys, "argv", [called, "-q"])
    assert fingerprint.provenance()["command"] == expected


def test_an_accelerator_without_a_name_is_a_class_of_its_own() -> None:
    assert hardware_class({"device": "mps", "device_name": None}) == "mps"


def test_the_driver_is_none_where_nothing_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(subprocess, "run", missing)
    assert fingerprint.gpu_driver() is None


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        (
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
            "stepping\t: 1\ncpu MHz\t\t: 3000\n",
            "AuthenticAMD 25 17 AMD EPYC 1",
        ),
        ("processor\t: 0\nBogoMIPS\t: 2000\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n", "0x41 0xd40"),
        ("processor\t: 0\n", None),
        (None, None),
    ],
)
def test_cpus_of_one_name_are_told_apart(tmp_path: Path, cpuinfo: str | None, expected: str | None) -> None:
    path = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        path.write_text(cpuinfo)
    assert fingerprint.cpu_model(path) == (expected or platform.processor() or platform.machine())
