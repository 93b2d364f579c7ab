"""New weights: parameters that neither a checkpoint nor a state gave their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import nn

from harness.torch_objects import first_values, is_distributed

MOST_VALUES = 256
"""Values that tell whether a tensor was given others."""


@dataclass(eq=False)
class NewWeights:
    """Tensors of a model that were made, and not loaded; it does not keep them alive."""

    tensors: dict[str, ref[torch.Tensor]]
    """Tensors by their names in the model."""
    began: dict[str, torch.Tensor]
    """A few values of each."""
    where: str | None

    @classmethod
    def of(cls, tensors: Mapping[str, torch.Tensor], where: str | None) -> NewWeights:
        began = {name: first_values(each, MOST_VALUES) for name, each in tensors.items()}
        return cls({name: ref(each) for name, each in tensors.items()}, began, where)

    def alive(self) -> dict[str, torch.Tensor]:
        return {name: each for name, held in self.tensors.items() if (each := held()) is not None}

    def are_as_made(self, now: Mapping[str, torch.Tensor]) -> bool:
        """Whether tensors of these names have the values that they were made with: they themselves, or copies."""
        there = [name for name in self.began if name in now]
        return bool(there) and all(
            torch.equal(first_values(now[name], MOST_VALUES), self.began[name]) for name in there
        )


def lacking(model: Any, info: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The parameters of a model's head that its checkpoint lacks, or has in another shape, by their names."""
    prefix = getattr(model, "base_model_prefix", "")
    if not isinstance(model, nn.Module) or not prefix or getattr(model, prefix, model) is model:
        return {}
    absent = set(_names(info.get("missing_keys", ()))) | set(_names(info.get("mismatched_keys", ())))
    named = dict(model.named_parameters(remove_duplicate=False))
    loaded = {id(each) for name, each in named.items() if name not in absent}
    return {
        name: each
        for name, each in named.items()
        if name in absent and not name.startswith(f"{prefix}.") and id(each) not in loaded and not is_distributed(each)
    }


def _names(keys: Iterable[Any]) -> Iterator[str]:
    """Mismatched keys come with both shapes."""
    return (key if isinstance(key, str) else key[0] for key in keys)
