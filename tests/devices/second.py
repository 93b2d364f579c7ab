"""A second kind of device, on any machine: ``import tests.devices.second``, and then ``tensor.to("second")``.

Its memory is the host's and its kernels are the CPU's (``second.cpp``), but its tensors refuse those of the CPU, as a
GPU's do. There are two, ``second:0`` and ``second:1``. torch can take back no device: import it in a process of its
own.

What it does not show: kernels that round otherwise, errors that come later, the memory of a device, NCCL.

Importing it builds it, once for each torch, in the user's cache: half a minute of a C++ compiler.

Raises:
    subprocess.CalledProcessError: the compiler failed.
    FileNotFoundError: there is none.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sysconfig
import types
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any, NamedTuple

import torch
from filelock import FileLock
from torch.utils import backend_registration, cpp_extension

from tests.devices import COMPILER

NAME = "second"
EXTENSION = "harness_second_device"
SOURCE = Path(__file__).with_suffix(".cpp")


class Waits(NamedTuple):
    """What made the program wait for the device since the process began."""

    numbers_read: int
    """``item()``, ``float()``, ``if tensor:``"""
    copies_to_host: int


def _built() -> Any:
    known = hashlib.sha256(SOURCE.read_bytes() + f"{torch.__version__} {sysconfig.get_platform()}".encode()).hexdigest()
    folder = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "full-training-harness" / "second-device"
    )
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{known[:16]}{sysconfig.get_config_var('EXT_SUFFIX')}"
    with FileLock(file.with_suffix(".lock")):  # workers of one session ask for it at once
        if not file.exists():
            half = file.with_suffix(".half")
            subprocess.run(_compiling(half), check=True)
            half.replace(file)
    loader = ExtensionFileLoader(EXTENSION, str(file))
    spec = importlib.util.spec_from_loader(EXTENSION, loader)
    assert spec is not None
    extension = importlib.util.module_from_spec(spec)
    loader.exec_module(extension)
    return extension


def _compiling(output: Path) -> list[str]:
    """The compiler's words; torch's own way to compile needs ninja, too."""
    includes = [*cpp_extension.include_paths(), sysconfig.get_paths()["include"]]
    names = {"TORCH_EXTENSION_NAME": EXTENSION, "_GLIBCXX_USE_CXX11_ABI": int(torch.compiled_with_cxx11_abi())}
    return [
        *(COMPILER, str(SOURCE), "-o", str(output), "-shared", "-fPIC", "-std=c++20", "-O1", "-w"),
        *(f"-D{name}={value}" for name, value in names.items()),
        *(f"-isystem{each}" for each in includes),
        *(f"-L{each}" for each in cpp_extension.library_paths()),
        *("-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"),
    ]


_device = _built()


def waits() -> Waits:
    return Waits(*_device.waits())


def observe(told: Callable[[], object] | None) -> None:
    """Have ``told`` called whenever the program waits, to see for what; None for nobody."""
    _device.observe(told)


def _set_device(device: Any) -> None:
    _device.set_device(device if isinstance(device, int) else torch.device(device).index or 0)


class _Device:
    """A device of this kind as the current one, as ``torch.cuda.device``."""

    def __init__(self, device: Any) -> None:
        self._device, self._before = device, 0

    def __enter__(self) -> None:
        self._before = _device.current_device()
        _set_device(self._device)

    def __exit__(self, *_: object) -> None:
        _set_device(self._before)


def _module() -> types.ModuleType:
    """What torch asks of ``torch.cuda``, of this device."""

    def constant(value: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: value

    module = types.ModuleType(f"torch.{NAME}")
    vars(module).update(
        is_available=constant(True),
        is_initialized=constant(True),
        _is_in_bad_fork=constant(False),
        device_count=constant(2),
        current_device=_device.current_device,
        set_device=_set_device,
        device=_Device,
        manual_seed=torch.default_generator.manual_seed,
        manual_seed_all=constant(None),
        get_rng_state=lambda device=0: torch.get_rng_state(),
        set_rng_state=lambda state, device=0: torch.set_rng_state(state),
        get_amp_supported_dtype=constant([torch.bfloat16, torch.float16]),
        synchronize=constant(None),
        empty_cache=constant(None),
        memory_allocated=constant(0),
        max_memory_allocated=constant(0),
    )
    return module


backend_registration.rename_privateuse1_backend(NAME)
torch._register_device_module(NAME, _module())
backend_registration.generate_methods_for_privateuse1_backend()
