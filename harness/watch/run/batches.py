"""What a batch holds: its tensors, its labels, its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Number
from types import NoneType
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch
import xxhash

from harness.torch_objects import is_dense
from harness.watch.bounded import MOST, LatestByKey
from harness.watch.events import Backward, Batch, Forward, Pass
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser

LABELS = ("labels", "label", "target", "targets", "y")
NOT_CONTENT = ("idx", "id", "index", "guid", "__index_level_0__")

CONSTANTS = (
    *(NoneType, Number, str, bytes, Enum, slice, range),
    *(torch.Size, torch.dtype, torch.device, torch.layout, np.generic),
)
"""What no call can change."""

MOST_KEPT = 64 * MOST
"""Tensors of batches that are known again after their pass. By reasoning: a script that keeps its batches in a list has
few of them."""


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
        for name, part in value.items():
            if name not in NOT_CONTENT:
                yield str(name).encode()
                yield from _parts(part)
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


@dataclass(eq=False)
class Use:
    """What models were given of the batches of a pass after it: a script may keep them in a list."""

    trained: bool = False
    evaluated: bool = False


class KeptBatches(Recogniser):
    """Passes whose batches a model is given later, known by their tensors and views of those."""

    def begin(self) -> None:
        self._uses: WeakKeyDictionary[Pass, Use] = WeakKeyDictionary()
        self._kept = LatestByKey[int, tuple[ref[torch.Tensor], Use]](MOST_KEPT)
        """The id of a tensor to the tensor and what became of its pass."""

    def of(self, of: Pass) -> Use:
        """What became of the batches of a pass, so far and later on."""
        return self._uses.setdefault(of, Use())

    def on_batch(self, event: Batch) -> None:
        use = self.of(event.of)
        for _, tensor in tensors_in(event.data):
            self._kept[id(tensor)] = ref(tensor), use

    def on_forward(self, event: Forward) -> None:
        for use in () if event.gradients else self._given(event):
            use.evaluated = True

    def on_backward(self, event: Backward) -> None:
        for forward in event.forwards:
            for use in self._given(forward) if forward.number in event.reached else ():
                use.trained = True

    def _given(self, forward: Forward) -> Iterator[Use]:
        for tensor in forward.tensors.values():
            for tensor_or_base in (tensor, tensor._base):
                kept = None if tensor_or_base is None else self._kept.get(id(tensor_or_base))
                if kept is not None and kept[0]() is tensor_or_base:
                    yield kept[1]
