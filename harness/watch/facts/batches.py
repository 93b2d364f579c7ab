"""What a batch holds: its tensors, its labels, its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from harness.torch_objects import is_dense

LABELS = ("labels", "label", "target", "targets", "y")
NOT_CONTENT = ("idx", "id", "index", "guid", "__index_level_0__")


def tensors_in(data: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if torch.is_tensor(data):
        if is_dense(data):
            yield "", data
    elif isinstance(data, Mapping) or hasattr(data, "items"):
        for name, value in data.items():
            yield from ((f"{name}.{inner}" if inner else str(name), each) for inner, each in tensors_in(value))
    elif isinstance(data, (list, tuple)):
        for place, value in enumerate(data):
            yield from ((f"{place}.{name}" if name else str(place), each) for name, each in tensors_in(value))


def labels_of(data: Any) -> list[int] | None:
    if isinstance(data, Mapping) or hasattr(data, "items"):
        found = next((data[name] for name in LABELS if name in data and torch.is_tensor(data[name])), None)
    elif isinstance(data, (list, tuple)) and len(data) >= 2 and torch.is_tensor(data[-1]):
        found = data[-1]
    else:
        found = None
    if found is None or found.dim() != 1 or found.is_floating_point():
        return None
    return [int(label) for label in found.tolist()]


def rows_in(data: Any, drawn: int) -> Iterator[bytes]:
    """A hash of each row, over its tensors without trailing zeros, which padding may have put there."""
    named = [(name, tensor) for name, tensor in tensors_in(data) if tensor.dim() > 0 and name not in NOT_CONTENT]
    if not any(tensor.dim() > 1 for _, tensor in named) or any(len(tensor) > drawn for _, tensor in named):
        return  # not one row of each tensor for each row of the dataset
    if len({len(tensor) for _, tensor in named}) > 1:
        return
    columns = [_array(tensor) for _, tensor in named]
    for row in zip(*columns, strict=True):
        digest = hashlib.blake2b(digest_size=8)
        for value in map(key_of, row):
            digest.update(len(value).to_bytes(8))
            digest.update(value)
        yield digest.digest()


def key_of(row: Any) -> bytes:
    """The numbers of a row, to tell it from others; of tokens without trailing zeros, which padding may have put there.

    Raises:
        ValueError: these are no numbers, or no rectangle of them.
    """
    array = _array(row)
    return array.tobytes().rstrip(b"\0") if array.ndim == 1 else array.tobytes()


def _array(values: Any) -> np.ndarray[Any, Any]:
    """As an array; whole numbers and others of one width each, whatever they were."""
    if torch.is_tensor(values):
        values = values.float() if values.is_floating_point() else values
        values = values.numpy(force=True)
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        raise ValueError(f"{array.dtype} is no type of numbers")
    kind = {"b": np.int64, "i": np.int64, "u": np.int64, "f": np.float32}.get(array.dtype.kind)
    return array if kind is None else np.ascontiguousarray(array, dtype=kind)


def content_digest(data: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in tensors_in(data):
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.detach().flatten()[:512].tolist()}".encode())
    return digest.digest()


def sample_digest(sample: Any) -> bytes:
    """A digest of what a dataset gave for one row: its tensors' and arrays' first values, and all that is neither."""
    digest = hashlib.blake2b(digest_size=8)
    for part in _parts(sample):
        digest.update(part.encode())
    return digest.digest()


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name not in NOT_CONTENT:
                yield str(name)
                yield from _parts(each)
    elif hasattr(value, "tolist") and hasattr(value, "reshape"):
        yield f"{tuple(value.shape)}{value.reshape(-1)[:512].tolist()}"
    elif isinstance(value, (list, tuple)) and not isinstance(next(iter(value), None), (int, float)):
        for each in value:
            yield from _parts(each)
    else:
        yield repr(value[:512] if isinstance(value, (str, bytes, list, tuple)) else value)
