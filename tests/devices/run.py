"""Runs a command of harness with the second device: a program for a server that has it (tests.server).

``main([OUTPUT, HOW, COMMAND…])``: where ``HOW`` is ``default``, all that is made lies there
(``torch.set_default_device``); otherwise the script's text moves it (tests.devices.moved). OUTPUT is told where the
parameters lay that optimizers stepped on, and how often the program waited for the device.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def on_device(value: Any) -> Any:
    """A model or tensors on the second device; what holds them is the same object where nothing in it moves."""
    import torch

    from tests.devices import second

    if isinstance(value, torch.nn.Module | torch.Tensor):
        return value.to(second.NAME)
    if isinstance(value, tuple | list):
        parts = [on_device(each) for each in value]
        return value if all(map(_is, parts, value)) else _like(value, parts)
    if isinstance(value, Mapping) and hasattr(value, "to"):
        return value.to(second.NAME)
    if isinstance(value, Mapping) and all(isinstance(each, torch.Tensor) for each in value.values()):
        values = {name: on_device(each) for name, each in value.items()}
        return value if all(values[name] is value[name] for name in value) else values
    return value


def model_on_device(value: Any) -> Any:
    import torch

    return on_device(value) if isinstance(value, torch.nn.Module) else value


def _is(one: object, other: object) -> bool:
    return one is other


def _like(value: Any, parts: Sequence[Any]) -> Any:
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def main(arguments: Sequence[str], prog_name: str = "harness") -> None:
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from harness import cli
    from tests.devices import moved, second

    output, how, *command = arguments
    places: set[str] = set()

    def stepped(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        places.update(str(each.device) for group in optimizer.param_groups for each in group["params"])

    register_optimizer_step_post_hook(stepped)
    os.environ["ACCELERATE_TORCH_DEVICE"] = second.NAME
    if how == "default":
        torch.set_default_device(second.NAME)
    else:
        vars(builtins).update({moved.DATA: on_device, moved.MODEL: model_on_device})
    file = Path(output).absolute()
    try:
        cli.main(list(command), prog_name=prog_name)
    finally:
        file.write_text(json.dumps({"places": sorted(places), "waits": second.waits()}), encoding="utf-8")
