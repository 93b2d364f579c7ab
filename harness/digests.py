"""Digests: equal where the bits are. They tell tensors and states apart, and are no protection against anybody."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xxhash
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import is_dense

Digests = dict[str, str]
"""Digests of tensors by their names."""

SHORT = 64
"""Numbers of a list from which on it is one value, and not so many."""

DEEPEST = 12


def digest(tensor: torch.Tensor) -> str:
    """Digest of a tensor's type, shape and bits; of a sparse or nested tensor of what it prints as."""
    if not is_dense(tensor):
        return xxhash.xxh3_64_hexdigest(repr(tensor).encode())
    array = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    found = xxhash.xxh3_64(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
    found.update(array.view(torch.uint8).numpy().data if array.numel() else b"")
    return found.hexdigest()


def joined(parts: Iterable[Any]) -> str:
    """One digest of several, or of anything that says itself when printed."""
    found = xxhash.xxh3_64()
    for part in parts:
        found.update(f"{part}\0".encode())
    return found.hexdigest()


def differing(one: Digests, other: Digests, *, common: bool = True) -> list[str]:
    """The names whose digests differ; unless only what both have is asked for, those that one lacks too."""
    names = [name for name in one if name in other] if common else list(one | other)
    return [name for name in names if one.get(name) != other.get(name)]


def weights_of(model: nn.Module) -> dict[str, str]:
    """Parameters and buffers by their names."""
    return {name: digest(tensor) for name, tensor in named_tensors([model]).items()}


def named_models(models: Iterable[nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    """Each with what stands before the names in it, so that no two have one: the class, but for the first."""
    for number, model in enumerate(models):
        yield f"{type(model).__name__} {number + 1}." if number else "", model


def named_tensors(models: Iterable[nn.Module]) -> dict[str, torch.Tensor]:
    """Parameters and buffers of several models by their names, each once."""
    found: dict[str, torch.Tensor] = {}
    seen = set[int]()
    for before, model in named_models(models):
        own = [*model.named_parameters(), *model.named_buffers()]
        found |= {before + name: tensor for name, tensor in own if id(tensor) not in seen}
        seen |= {id(tensor) for _, tensor in own}
    return found


def state_of(optimizer: Optimizer, names: Mapping[int, str]) -> dict[str, str]:
    """What an optimizer keeps of each parameter, by its name (``names`` by ``id``) and kind."""
    found = {}
    for number, parameter in enumerate(each for group in optimizer.param_groups for each in group["params"]):
        name = names.get(id(parameter), f"parameter {number}")
        for kind, value in optimizer.state.get(parameter, {}).items():
            found[f"{name} {kind}"] = digest(value) if torch.is_tensor(value) else joined([value])
    return found


def random_states(generators: Iterable[torch.Generator] = ()) -> dict[str, str]:
    """The states of Python's, NumPy's and torch's generators, and of ``generators``, which are a loader's."""
    states = {
        "Python": value_of(random.getstate()),
        "NumPy": value_of(np.random.get_state()),
        **digests_of(torch_states()),
    }
    own = [digest(each.get_state()) for each in generators]
    return states | ({"the loader's generator": joined(own)} if own else {})


def torch_states() -> dict[str, list[torch.Tensor]]:
    """The states of torch's generators, of the processor and of each GPU."""
    states = {"torch": [torch.get_rng_state()]}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["CUDA"] = torch.cuda.get_rng_state_all()
    return states


def digests_of(states: Mapping[str, Sequence[torch.Tensor]]) -> dict[str, str]:
    return {name: digest(each[0]) if len(each) == 1 else joined(map(digest, each)) for name, each in states.items()}


def values_in(saved: Any) -> dict[str, str]:
    """What is saved, by the keys that lead to it."""
    return dict(_values(saved, "", DEEPEST))


def _values(value: Any, key: str, depth: int) -> Iterator[tuple[str, str]]:
    if hasattr(value, "state_dict") and callable(value.state_dict) and not isinstance(value, type):
        value = value.state_dict()
    if isinstance(value, Mapping) and depth:
        for name, each in value.items():
            yield from _values(each, f"{key}.{name}" if key else str(name), depth - 1)
    elif isinstance(value, (list, tuple)) and depth and not _is_one_value(value):
        for place, each in enumerate(value):
            yield from _values(each, f"{key}.{place}" if key else str(place), depth - 1)
    else:
        yield key, value_of(value)


def _is_one_value(values: list[Any] | tuple[Any, ...]) -> bool:
    return len(values) > SHORT or all(isinstance(each, (int, float, str, bool, type(None))) for each in values)


def value_of(value: Any) -> str:
    """A number or a short word as it is, else a digest: of a tensor of numbers with a point as :func:`digest` gives it,
    of all else one with a sign in front of it."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        value = torch.from_numpy(np.ascontiguousarray(value))
    if torch.is_tensor(value):
        return digest(value) if value.is_floating_point() else f"~{digest(value)}"
    if isinstance(value, (bool, int, float, type(None))) or (isinstance(value, str) and len(value) <= SHORT):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "~" + joined(value_of(each) for each in value)
    if isinstance(value, Mapping):
        return "~" + joined(f"{name}={value_of(each)}" for name, each in value.items())
    return "~" + joined([type(value).__qualname__ if " at 0x" in repr(value) else repr(value)])
