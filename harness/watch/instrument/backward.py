"""Backward passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from harness.watch.instrument.patches import Original, Patches
from harness.watch.session import Session


def install(threads: Session, patches: Patches) -> None:
    def backward(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = threads.current()
        tensors = args[0] if args else kwargs["tensors"]
        if isinstance(tensors, Iterator):
            tensors = tuple(tensors)
            args, kwargs = (tensors, *args[1:]), {name: value for name, value in kwargs.items() if name != "tensors"}
        root = tensors if torch.is_tensor(tensors) else next(iter(tensors), None)
        if monitor is None or not torch.is_tensor(root) or monitor.in_backward:
            return original(*args, **kwargs)
        with monitor.backward(root):
            return original(*args, **kwargs)

    def differentiated(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = threads.current()
        if monitor is not None and monitor.batch is not None:
            monitor.batch.of.trains = True  # gradients that the script uses in its own way
        return original(*args, **kwargs)

    patches.wrap(torch.autograd, "backward", backward)
    patches.wrap(torch.autograd, "grad", differentiated)
