"""Stacks: lists of modules, and places in them that hold one and the same module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from harness.watch.events import Fact, Forward
from harness.watch.facts.twins import Twin, detached, probing
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import tensors_in


class StacksCalled(Fact):
    """A model with a list of modules is trained; told for each module that works in several places, one on the other.

    ``where`` is its first call.
    """

    needs = "training of a model with a list of modules"
    stack: str = ""
    """The list's name, behind the model's class."""
    places: Sequence[str] = ()
    """Places that hold one and the same module, each of whose calls works on what came of the one before."""
    layer: str = ""
    """The class of that module."""


@dataclass(frozen=True)
class Shared:
    """Places of a list of modules that hold one and the same module."""

    container: str
    """The list's name in the model; empty for the model itself."""
    places: list[str]
    module: nn.Module

    @property
    def name(self) -> str:
        """Name of its first place in the model."""
        return f"{self.container}.{self.places[0]}" if self.container else self.places[0]


@dataclass(eq=False)
class _ModuleCalls:
    """What a module is given and gives, in the order of its calls."""

    seen: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any) -> None:
        given, gives = (
            next((each for _, each in tensors_in(value) if each.is_floating_point()), None)
            for value in ([args, kwargs], output)
        )
        if given is not None and gives is not None:
            self.seen.append((given, gives))

    @property
    def are_a_chain(self) -> bool:
        """Whether each call works on what came of the call before, with no other layer between."""
        return all(_comes_from(given, before) for (_, before), (given, _) in pairwise(self.seen))


class Stacks(Recogniser):
    makes = (StacksCalled,)

    def begin(self) -> None:
        self._asked: WeakSet[nn.Module] = WeakSet()

    def on_forward(self, event: Forward) -> None:
        model = _unwrapped(event.model)
        if not event.gradients or model in self._asked:
            return
        self._asked.add(model)
        stacks = [*_stacks(model)]
        shared = [each for name, stack in stacks for each in _shared(name, stack)]
        if not shared:
            if stacks:
                self.tell(StacksCalled(where=event.where))
            return
        for repeated in self._in_a_chain(shared, model, event):
            stack = f"{type(model).__name__}.{repeated.container}" if repeated.container else type(model).__name__
            layer = type(repeated.module).__name__
            self.tell(StacksCalled(stack=stack, places=repeated.places, layer=layer, where=event.where))

    def _in_a_chain(self, shared: list[Shared], model: nn.Module, event: Forward) -> list[Shared]:
        """Shared layers whose calls follow on one another, by a copy of the model that is given the same rows again."""
        unknown = f"whether the shared layers of {type(model).__name__} work one after the other"
        with probing(self.monitor, unknown, gradients=True):
            twin = Twin(model, as_it_trains=True)
            calls = [_ModuleCalls() for _ in shared]
            for each, of in zip(shared, calls, strict=True):
                twin.model.get_submodule(each.name).register_forward_hook(of, with_kwargs=True)
            twin.call(detached(event.args), detached(event.kwargs))
            self.tell(StacksCalled(where=event.where))
            heard = zip(shared, calls, strict=True)
            return [each for each, of in heard if len(of.seen) == len(each.places) and of.are_a_chain]
        return []


def _unwrapped(model: nn.Module) -> nn.Module:
    """Without torch.compile and DistributedDataParallel, which a copy needs not."""
    inner = getattr(model, "_orig_mod", model)
    return inner.module if isinstance(inner, nn.parallel.DistributedDataParallel) else inner


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
        if len(held) > 1 and any(p.requires_grad and p.dim() > 1 for p in module.parameters()):
            yield Shared(name, held, module)


def _comes_from(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one tensor was computed from another, by its graph, and by no layer with weights on the way."""
    if tensor.grad_fn is None or other.grad_fn is None:
        return False
    uses: dict[Any, list[Any]] = {}
    known, waiting = {other.grad_fn}, [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node in known:
            continue
        known.add(node)
        for following, _ in node.next_functions:
            if following is not None:
                uses.setdefault(following, []).append(node)
                waiting.append(following)
    on_the_way, waiting = {other.grad_fn}, [other.grad_fn]
    while waiting:
        more = set(uses.get(waiting.pop(), ())) - on_the_way
        on_the_way |= more
        waiting += more
    between = on_the_way - {other.grad_fn}
    return tensor.grad_fn in on_the_way and not any(map(_has_weights, between))


def _has_weights(node: Any) -> bool:
    """Whether it multiplies by a matrix of parameters, or convolves with one."""
    if not any(kind in node.name() for kind in ("mmBackward", "MmBackward", "LinearBackward", "ConvolutionBackward")):
        return False
    return any(_is_parameter(each) for each, _ in node.next_functions)


def _is_parameter(node: Any) -> bool:
    """Whether a node of a graph is a matrix of parameters, transposed perhaps, or in another precision."""
    while node is not None and node.name() in ("TBackward0", "TransposeBackward0", "ToCopyBackward0"):
        node = node.next_functions[0][0]
    variable = getattr(node, "variable", None)
    return variable is not None and variable.dim() > 1
