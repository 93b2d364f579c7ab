"""Calls of modules."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import nn

from harness.torch_objects import is_traced
from harness.watch.instrument.patches import Patches
from harness.watch.monitor import Threads


class _Depth(threading.local):
    """How deep in one another modules are being called in this thread."""

    calls = 0
    within_own = False
    """Whether the outermost is a module of the script's own, and no pretrained model."""


def install(threads: Threads, patches: Patches) -> None:
    """Replace ``nn.Module.__call__``, which costs less than torch's global hooks do: they take each call of each module
    on its slow path, and only few calls are told of."""
    depth = _Depth()
    call = nn.Module.__call__

    def __call__(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:  # noqa: N807, what it replaces
        if torch.compiler.is_compiling():  # asked first: what is compiled must not see the depth
            return call(module, *args, **kwargs)
        if depth.calls and not (depth.within_own and hasattr(type(module), "base_model_prefix")):
            return call(module, *args, **kwargs)
        if is_traced():
            return call(module, *args, **kwargs)
        if not depth.calls:
            depth.within_own = not hasattr(module, "config")
        depth.calls += 1
        try:
            output = call(module, *args, **kwargs)
        finally:
            depth.calls -= 1
        if not depth.calls and next(nn.Module.named_parameters(module), None) is None:  # a class may have its own
            return output  # a loss, a transform of data, a replica of DataParallel
        with threads.guarded():
            monitor = threads.calling_a_model()
            if monitor is not None and not monitor.in_backward:
                if depth.calls:
                    monitor.inner_forward(module, args, kwargs, output)
                else:
                    monitor.forward(module, args, kwargs, output)
        return output

    patches.put(nn.Module, "__call__", __call__)
