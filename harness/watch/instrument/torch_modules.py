"""Calls of modules, through torch's global hooks."""

from __future__ import annotations

import threading
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle

from harness.watch.monitor import Threads


class _Depth(threading.local):
    """How deep in one another modules are being called in this thread."""

    calls = 0
    within_own = False
    """Whether the outermost is a module of the script's own, and no pretrained model."""


def install(threads: Threads) -> list[RemovableHandle]:
    depth = _Depth()

    def forward_begins(module: nn.Module, args: tuple[Any, ...]) -> None:
        if not depth.calls:
            depth.within_own = not hasattr(module, "config")
        depth.calls += 1

    def forward_ends(module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        depth.calls -= 1
        if len(rest) < 2 or rest[1] is None:
            return  # without keyword arguments and output where the forward raised
        if depth.calls and not (depth.within_own and hasattr(module, "base_model_prefix")):
            return
        if not depth.calls and next(module.parameters(), None) is None:
            return  # a loss, a transform of data, a replica of DataParallel
        monitor = threads.calling_a_model()
        if monitor is None or monitor.in_backward:
            return
        kwargs, output = rest
        if depth.calls:
            monitor.inner_forward(module, args, kwargs, output)
        else:
            monitor.forward(module, args, kwargs, output)

    return [
        register_module_forward_pre_hook(forward_begins),
        register_module_forward_hook(forward_ends, with_kwargs=True, always_call=True),
    ]
