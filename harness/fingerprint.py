"""The machine and library facts that decide whether two runs may be compared exactly."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.compat import fp32_precision

if TYPE_CHECKING:
    from torch import Tensor

LIBRARIES = (
    "torch", "transformers", "tokenizers", "datasets", "evaluate", "accelerate", "huggingface-hub",
    "numpy", "pyarrow", "safetensors", "full-training-harness",
)  # fmt: skip


def library_versions() -> dict[str, str | None]:
    """The installed version of each library that takes part in a run; None where it is not installed."""

    def version(name: str) -> str | None:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return None

    return {name: version(name) for name in LIBRARIES}


CPU_FACTS = (
    "vendor_id", "cpu family", "model", "model name", "stepping",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
)  # fmt: skip


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Vendor, family and model of the CPU: kernels, and so the masks of dropout, differ between equally capable ones.

    Virtual machines may name every model of a vendor alike; family, model and stepping tell them apart.
    """
    if cpuinfo.is_file():
        facts = dict(re.findall(r"^([\w ]+?)\s*: (.+)$", cpuinfo.read_text(errors="replace"), re.MULTILINE))
        if found := [facts[name] for name in CPU_FACTS if name in facts]:
            return " ".join(found)
    return platform.processor() or platform.machine()


def git(folder: Path, *arguments: str) -> str | None:
    """What git says in a folder; None where it says no, is not there, or has no checkout there."""
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603, no shell
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def provenance() -> dict[str, Any]:
    """The commit of the checkout that the harness runs from, whether it has changes, and the command."""
    here, called = Path(__file__).parent, Path(sys.argv[0])
    called_as = called.parent.name if called.name == "__main__.py" else called.name  # python -m pytest

    tracked = git(here, "ls-files", "--error-unmatch", __file__) is not None  # and not merely below somebody's checkout
    changes = git(here, "status", "--porcelain", "--untracked-files=no") if tracked else None
    return {
        "commit": git(here, "rev-parse", "HEAD") if tracked else None,
        "dirty": bool(changes) if tracked else None,
        "command": shlex.join([called_as, *sys.argv[1:]]),
    }


def fingerprint(device: str | None = None) -> dict[str, Any]:
    """Versions, the device that a run used, CPU capability and threads, as JSON values.

    Args:
        device: a device type of torch; None for the one that the document's code would choose.
    """
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return {
        "python": platform.python_version(),
        "libraries": library_versions(),
        "platform": "-".join(filter(None, (platform.system(), *platform.libc_ver()))),
        "machine": platform.machine(),
        "device": device,
        "device_name": torch.cuda.get_device_name() if device == "cuda" else None,
        "gpu": _gpu() if device == "cuda" else None,
        "cpu": cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "draws": draws() if device == "cpu" else None,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "fp32_precision": fp32_precision(),
    }


def draws() -> str:
    """What a seed draws on this CPU, as the start of a SHA-256: masks of dropout and orders of rows.

    They depend on the architecture and on how torch was built (with MKL or without). No generator's state is changed.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        mask = torch.nn.functional.dropout(torch.ones(4096, device="cpu"), 0.1) != 0
        order = torch.randperm(1000, device="cpu")
    return hashlib.sha256(mask.numpy().tobytes() + order.numpy().tobytes()).hexdigest()[:16]


def _gpu() -> dict[str, Any]:
    """What decides how a GPU rounds, beside its name: driver, CUDA, cuDNN, precision flags."""
    import torch

    return {
        "count": torch.cuda.device_count(),
        "capability": list(torch.cuda.get_device_capability()),
        "memory": torch.cuda.get_device_properties(0).total_memory,
        "driver": gpu_driver(),
        "cuda": torch.version.cuda or torch.version.hip,
        "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "bf16_reduced_precision_reduction": torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    }


def gpu_driver() -> str | None:
    """The driver's version, as nvidia-smi says it; None where it does not."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def data_digest(splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> str:
    """SHA-256 over the rows of every split; the hub's own column ``idx`` is left out."""
    data = hashlib.sha256()
    for split in sorted(splits):
        for row in splits[split]:
            data.update(repr([split, *(row[name] for name in sorted(row) if name != "idx")]).encode())
    return data.hexdigest()


def weights_digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and bits.

    Raises:
        LookupError: there are no tensors.
    """
    import torch

    if not tensors:
        raise LookupError("no weights")
    weights = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        weights.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        weights.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return weights.hexdigest()
