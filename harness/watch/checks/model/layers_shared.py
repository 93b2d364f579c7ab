from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from harness.torch_objects import unchanged_random_state
from harness.watch.check import Check
from harness.watch.events import Forward
from harness.watch.facts.parameters import names
from harness.watch.facts.replays import can_be_copied, copied, detached
from harness.watch.locate import from_signal_handler
from harness.watch.monitor import Monitor


@dataclass(frozen=True)
class Shared:
    """Places of a list of modules that hold one and the same module."""

    container: str
    """The list's name in the model; empty for the model itself."""
    places: list[str]
    module: nn.Module

    @property
    def name(self) -> str:
        """Its first one in the model."""
        return f"{self.container}.{self.places[0]}" if self.container else self.places[0]


@dataclass(eq=False)
class _Calls:
    """What a module is given and gives, in the order of its calls."""

    seen: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        given, gives = (
            next((each for each in (value if isinstance(value, tuple) else (value,)) if torch.is_tensor(each)), None)
            for value in (args, output)
        )
        if given is not None and gives is not None:
            self.seen.append((given, gives))

    @property
    def are_a_chain(self) -> bool:
        """Whether each call works on what came of the call before, and gives a tensor of the shape it was given."""
        return all(given.shape == gives.shape for given, gives in self.seen) and all(
            _comes_from(given, before) for (_, before), (given, _) in pairwise(self.seen)
        )


class LayersShared(Check):
    """Several layers of a stack are one and the same module, so it is only as large as one of them.

    ## Why is this a bug?
    `nn.ModuleList([layer] * 4)` and `for _ in range(4): layers.append(layer)` put one module four times into the list.
    The model is as deep as it looks, but every layer has the same weights: it has a quarter of the parameters that its
    code speaks of, learns less, and nothing says so. `parameters()` and a state dict give each tensor once, or the same
    one under several names.

    ## What to do
    Make a module for each place: `nn.ModuleList([Layer(width) for _ in range(4)])`, or copies of one that is there:
    `nn.ModuleList([copy.deepcopy(layer) for _ in range(4)])`.

    ## When it is right
    Weights that are shared on purpose between the layers of a stack, as in a Universal Transformer or in ALBERT. Call
    the module in a loop then, `for _ in range(4): x = self.layer(x)`, which says so, and is not reported. A head that
    is listed once for each layer whose output it is given, and towers that share their weights, are not either: no call
    of them works on what another gave.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html (its layers are copies)
    - https://arxiv.org/abs/1807.03819
    - https://arxiv.org/abs/1909.11942
    """

    id = "model::layers-shared"
    severity = "warning"
    needs = "training of a model with a list of modules"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.asked: WeakSet[nn.Module] = WeakSet()

    def on_forward(self, event: Forward) -> None:
        model = event.model
        if not event.gradients or model in self.asked:
            return
        self.asked.add(model)
        stacks = [*_stacks(model)]
        self.looked |= bool(stacks)
        shared = [each for name, stack in stacks for each in _shared(name, stack)]
        if not shared or not can_be_copied(model):
            return
        for each in _in_a_chain(shared, event):
            stack = f"{type(model).__name__}.{each.container}" if each.container else type(model).__name__
            self.found(
                expected="a module of its own for each layer",
                observed=f"{names(each.places)} of {stack} are one "
                f"{type(each.module).__name__}, and each call of it works on what came of the one before",
                where=event.where,
                update=self.monitor.update,
            )


def _stacks(model: nn.Module) -> Iterator[tuple[str, nn.ModuleList | nn.Sequential]]:
    for name, module in model.named_modules():
        if type(module) in (nn.ModuleList, nn.Sequential) and len(module._modules) > 1:
            yield name, module  # a subclass may have a forward of its own


def _shared(name: str, stack: nn.ModuleList | nn.Sequential) -> Iterator[Shared]:
    places: dict[nn.Module, list[str]] = {}
    for place, module in stack._modules.items():
        if module is not None:
            places.setdefault(module, []).append(place)
    for module, held in places.items():
        if len(held) > 1 and any(p.requires_grad for p in module.parameters()):
            yield Shared(name, held, module)


def _in_a_chain(shared: list[Shared], event: Forward) -> Iterator[Shared]:
    """Those whose calls follow on one another, by a copy of the model that is given the same rows again."""
    with unchanged_random_state(), torch.enable_grad():
        twin = copied(event.model)
        if twin is None:
            return
        calls = [_Calls() for _ in shared]
        for each, heard in zip(shared, calls, strict=True):
            twin.get_submodule(each.name).register_forward_hook(heard)
        try:
            twin(*detached(event.args), **detached(event.kwargs))
        except Exception as error:
            if from_signal_handler(error):
                raise
            return
    yield from (
        each
        for each, heard in zip(shared, calls, strict=True)
        if len(heard.seen) == len(each.places) and heard.are_a_chain
    )


def _comes_from(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one tensor was computed from another, by its graph."""
    waiting, seen = [tensor.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if node is other.grad_fn:
            return True
        seen.add(node)
        waiting += [each for each, _ in node.next_functions]
    return False
