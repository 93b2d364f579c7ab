"""What is asked of torch's objects in several places."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import Optimizer

Number = TypeVar("Number", float, torch.Tensor)

TWINS: WeakSet[Any] = WeakSet()
"""Schedulers that are asked in the place of a script's. Another watch in this process would take them for the
script's own, and make twins of them in turn."""


def is_traced() -> bool:
    """Whether operations are recorded, as by torch.jit.trace."""
    return torch._C._get_tracing_state() is not None


def is_transformed() -> bool:
    """Whether operations are recorded, or run for many at once (torch.func), rather than run."""
    return is_traced() or is_fake() or torch._C._functorch.peek_interpreter_stack() is not None


def is_fake() -> bool:
    """Whether tensors have shapes and no values, as where torch.compile goes through a function."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def is_dense(value: Any) -> bool:
    """Whether it is a tensor whose numbers lie in rows, and no sparse or nested one."""
    return torch.is_tensor(value) and value.layout is torch.strided and not value.is_nested


def have_same_values(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers in the same order, on whichever devices; not of what holds none."""
    known = is_dense(one) and is_dense(other) and not one.is_meta and not other.is_meta
    return known and one.numel() == other.numel() and torch.equal(one.flatten().to(other.device), other.flatten())


def version(tensor: torch.Tensor) -> int:
    """How often a tensor was written to; 0 of one of inference mode, which does not count that."""
    return 0 if tensor.is_inference() else tensor._version


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Without its graph; of complex numbers both parts."""
    return torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()


def is_clamped(before: torch.Tensor, now: torch.Tensor) -> bool:
    """Whether what was outside of two bounds is at them now, and all else is as it was."""
    return bool(now.numel()) and torch.equal(now, before.clamp(now.min(), now.max()))


def first_values(tensor: torch.Tensor, most: int) -> torch.Tensor:
    """A copy of a tensor's first values, on the CPU, by which it is told whether it has others later."""
    return real(tensor).flatten()[:most].to("cpu", copy=True)


def raw_optimizer(optimizer: Any) -> Optimizer:
    """The optimizer that steps: the one inside Accelerate's, where it is one of those."""
    stepped: Optimizer = getattr(optimizer, "optimizer", optimizer)
    return stepped


def share_groups(one: Any, other: Optimizer) -> bool:
    """Whether two optimizers are the same, or one wraps the other and has its groups, so that both have one lr."""
    one = raw_optimizer(one)
    if one is other:
        return True
    groups = {id(group) for group in other.param_groups}
    return any(id(group) in groups for group in getattr(one, "param_groups", ()))


def registered(module: nn.Module) -> Iterator[nn.Parameter]:
    """All parameters of a module and its parts, whatever its own ``parameters`` leaves out."""
    for part in module.modules():
        yield from (p for p in part._parameters.values() if p is not None)


def held_by(optimizer: Optimizer) -> list[torch.Tensor]:
    """The tensors of an optimizer, in the order of its groups."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def held_by_any(optimizers: Iterable[Optimizer]) -> set[int]:
    """The ids of the tensors of all of them."""
    return {id(parameter) for optimizer in list(optimizers) for parameter in held_by(optimizer)}


def is_distributed(tensor: torch.Tensor) -> bool:
    """Whether it is spread over processes, so that most of what is asked of it takes all of them."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def anything_compiled() -> bool:
    """Whether torch.compile was called in this process."""
    module = sys.modules.get("torch._dynamo.eval_frame")
    return any(each is not None for each in getattr(module, "cached_backends", {}).values())


def share_parameters(one: nn.Module, other: nn.Module) -> bool:
    mine = {id(p) for p in one.parameters()}
    return any(id(p) in mine for p in other.parameters())


def in_half_precision(model: nn.Module) -> bool:
    """Whether any of its weights are."""
    return any(p.is_floating_point() and p.element_size() < 4 for p in model.parameters())


def checksum(parameters: Iterable[torch.Tensor]) -> int:
    """The sum of the bits of all parameters, as whole numbers: equal for equal ones, and cheap on any device."""
    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return sum(int(p.detach().view(whole[p.element_size()]).sum(dtype=torch.int64)) for p in parameters)


def spread_over(model: nn.Module) -> list[nn.Parameter]:
    """A few matrices from all over a model."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    return matrices[:1] + matrices[len(matrices) // 3 :: max(1, len(matrices) // 3)][:2]


def own_generators(loader: Any) -> dict[str, tuple[Any, torch.Generator | None]]:
    """What draws in a dataloader: itself, its sampler and that of Accelerate's batches, each with its own generator.

    None for one that has none; torch's is drawn from then.
    """
    batches = getattr(loader, "batch_sampler", None)
    inner = getattr(batches, "batch_sampler", batches)
    owners = {
        "loader": loader,
        "sampler": getattr(loader, "sampler", None),
        "of batches": getattr(inner, "sampler", None),
    }
    return {name: (owner, owner.generator) for name, owner in owners.items() if hasattr(owner, "generator")}


def random_state() -> dict[str, Any]:
    """Where Python's, NumPy's and torch's random numbers are: builtin types and tensors."""
    python, numpy = random.getstate(), np.random.get_state(legacy=False)
    assert isinstance(numpy, dict)
    key = numpy["state"]["key"].tolist()
    return {
        "python": python,
        "numpy": numpy | {"state": numpy["state"] | {"key": key}},
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Go on from what :func:`random_state` told."""
    random.setstate(state["python"])
    numpy = state["numpy"]
    np.random.set_state(numpy | {"state": numpy["state"] | {"key": np.array(numpy["state"]["key"], dtype=np.uint32)}})
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])


def drawing_devices() -> tuple[str, int]:
    """The kind of device that this process uses beside the CPU, and how many of it there are; cuda and 0 for none.

    To ask torch for all devices starts those that the script does not use, and warns where there are several.
    """
    known = getattr(torch, "accelerator", None)  # from torch 2.6 on
    current = None if known is None else known.current_accelerator()
    kind = "cuda" if current is None else current.type
    module = getattr(torch, kind, None)
    uses = getattr(module, "is_initialized", getattr(module, "is_available", None))  # MPS has no beginning of its own
    return kind, int(module.device_count()) if module is not None and uses is not None and uses() else 0


@contextmanager
def unchanged_random_state(*generators: torch.Generator) -> Iterator[None]:
    """Whatever is drawn inside, Python, NumPy, torch and ``generators`` go on afterwards as if it had not been."""
    python, numpy, states = random.getstate(), np.random.get_state(), [each.get_state() for each in generators]
    device, count = drawing_devices()
    with torch.random.fork_rng(devices=range(count), device_type=device):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


def adam_update(
    value: Number,
    gradient: Number,
    first: Number,
    second: Number,
    *,
    step: int | float,
    lr: float,
    betas: tuple[float, float],
    eps: float,
) -> tuple[Number, Number, Number]:
    """Kingma and Ba 2015, algorithm 1, of one number or of each in a tensor.

    ``step`` counts from 1; ``first`` and ``second`` are the moments before it.

    Returns:
        The value and the two moments after it.
    """
    beta1, beta2 = betas
    first = beta1 * first + (1 - beta1) * gradient
    second = beta2 * second + (1 - beta2) * gradient * gradient
    denominator = second**0.5 / math.sqrt(1 - beta2**step) + eps
    return value - lr * (first / (1 - beta1**step)) / denominator, first, second


def leaves(root: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that get gradients from this one, by its graph: itself, where it has none."""
    return [root] if root.is_leaf and root.requires_grad else leaves_of(root.grad_fn)


def leaves_of(node: Any) -> list[torch.Tensor]:
    """The tensors that get gradients from a node of a graph."""
    found: dict[int, torch.Tensor] = {}
    waiting, seen = [node], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if torch.is_tensor(variable):
            found[id(variable)] = variable
        waiting += [each for each, _ in node.next_functions]
    return list(found.values())


_VIEWS = ("ViewBackward0", "UnsafeViewBackward0")


def shapes_before(tensor: torch.Tensor) -> list[torch.Size]:
    """The shapes that a tensor was viewed from, the latest first."""
    return [torch.Size(node._saved_self_sym_sizes) for node in _views(tensor.grad_fn)]


def _views(node: Any) -> Iterator[Any]:
    while node is not None:
        if node.name() in _VIEWS and hasattr(node, "_saved_self_sym_sizes"):
            yield node
        elif not _adds_bias(node):
            return
        node = node.next_functions[0][0]


def _adds_bias(node: Any) -> bool:
    """Whether it is the last part of a linear layer, which leaves the shape as it is."""
    added = node.next_functions[1][0] if node.name() == "AddBackward0" else None
    return torch.is_tensor(bias := getattr(added, "variable", None)) and bias.dim() == 1


def storages(tensors: Iterable[torch.Tensor]) -> list[StorageWeakRef]:
    """Weak references to the memory of those tensors that have some, which views, arrays and detached ones share."""
    found = []
    for tensor in tensors:
        with suppress(RuntimeError, NotImplementedError):  # sparse tensors and subclasses may have none
            found.append(StorageWeakRef(tensor.untyped_storage()))  # type: ignore[no-untyped-call]
    return found


def in_modes() -> bool:
    """Whether something of the script's own is told of each operation: a dispatch or a function mode."""
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack())


@contextmanager
def out_of_modes() -> Iterator[None]:
    """Operations that no mode of the script's is told of: one that adds noise would draw other numbers than alone."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield
