"""New weights: parameters that neither a checkpoint nor a state gave their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

MOST_VALUES = 256
"""Values that tell whether a tensor was given others."""


@dataclass(eq=False)
class NewWeights:
    """Tensors of a model that were made, and not loaded."""

    tensors: dict[str, torch.Tensor]
    """By their names in the model."""
    began: dict[str, torch.Tensor]
    """A few values of each."""
    where: str | None

    @classmethod
    def of(cls, tensors: Mapping[str, torch.Tensor], where: str | None) -> NewWeights:
        return cls(dict(tensors), {name: _beginning(each) for name, each in tensors.items()}, where)

    @property
    def are_as_made(self) -> bool:
        return all(torch.equal(_beginning(each), self.began[name]) for name, each in self.tensors.items())


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
        if name in absent and not name.startswith(f"{prefix}.") and id(each) not in loaded
    }


def _names(keys: Iterable[Any]) -> Iterator[str]:
    """Mismatched keys come with both shapes."""
    return (key if isinstance(key, str) else key[0] for key in keys)


def _beginning(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().flatten()[:MOST_VALUES].clone()
