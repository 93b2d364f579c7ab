"""What a batch holds: its tensors, its labels, its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from numbers import Number
from types import NoneType
from typing import Any

import numpy as np
import torch
import xxhash

from harness.torch_objects import is_dense
from harness.watch.host import on_host

LABELS = ("labels", "label", "target", "targets", "y")
NOT_CONTENT = ("idx", "id", "index", "guid", "__index_level_0__")

CONSTANTS = (
    *(NoneType, Number, str, bytes, Enum, slice, range),
    *(torch.Size, torch.dtype, torch.device, torch.layout, np.generic),
)
"""What no call can change."""


def is_data(value: Any) -> bool:
    """Whether all that is in it can be seen: tensors and constants, in mappings and sequences."""
    if isinstance(value, Mapping):
        return all(map(is_data, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_data, value))
    return is_dense(value) or isinstance(value, CONSTANTS)


def tensors_in(data: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if torch.is_tensor(data):
        if is_dense(data):
            yield "", data
    elif isinstance(data, Mapping):
        for name, value in data.items():
            yield from ((f"{name}.{inner}" if inner else str(name), each) for inner, each in tensors_in(value))
    elif isinstance(data, (list, tuple)):
        for place, value in enumerate(data):
            yield from ((f"{place}.{name}" if name else str(place), each) for name, each in tensors_in(value))


def labels_of(data: Any) -> list[int] | None:
    if isinstance(data, Mapping):
        found = next((data[name] for name in LABELS if name in data and torch.is_tensor(data[name])), None)
    elif isinstance(data, (list, tuple)) and len(data) >= 2 and torch.is_tensor(data[-1]):
        found = data[-1]
    else:
        found = None
    if found is None or found.dim() != 1 or found.is_floating_point():
        return None
    return [int(label) for label in found.tolist()]


def content_digest(data: Any) -> bytes:
    """A digest of the first values of its tensors."""
    return _digest(part for name, tensor in tensors_in(data) for part in (name.encode(), *_first_values(tensor)))


def sample_digest(sample: Any) -> bytes:
    """A digest of what a dataset gave for one row: its tensors' and arrays' first values, and all that is neither."""
    return _digest(_parts(sample))


def _digest(parts: Iterable[bytes]) -> bytes:
    return xxhash.xxh3_64_digest(b"\0".join(parts))


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name not in NOT_CONTENT:
                yield str(name).encode()
                yield from _parts(each)
    elif torch.is_tensor(value) and is_dense(value):
        yield from _first_values(value)
    elif hasattr(value, "tolist") and hasattr(value, "reshape"):
        yield f"{tuple(value.shape)}{value.reshape(-1)[:512].tolist()}".encode()
    elif isinstance(value, (list, tuple)) and not isinstance(next(iter(value), None), (int, float)):
        for each in value:
            yield from _parts(each)
    else:
        yield repr(value[:512] if isinstance(value, (str, bytes, list, tuple)) else value).encode()


def _first_values(tensor: torch.Tensor) -> tuple[bytes, bytes]:
    """Shape of a tensor, and the bytes of its first values."""
    first = tensor if tensor.device.type == "cpu" else on_host(tensor).reshape(-1)[:512]
    try:
        values = first.numpy(force=True)
    except TypeError:  # NumPy has no such type, as bfloat16
        values = first.detach().reshape(-1)[:512].float().numpy(force=True)
    return str(tuple(tensor.shape)).encode(), values.reshape(-1)[:512].tobytes()
