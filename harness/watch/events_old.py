"""What happens in a training loop, as events. An event is looked at once, when it happens, and then let go."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader


@dataclass(eq=False)
class Pass:
    """One pass over a DataLoader."""

    loader: DataLoader[Any]
    number: int
    """Of this loader, counted from 1."""
    planned: int | None
    """Batches of a whole pass; None where the loader has no length."""
    where: str | None
    made: int = 0
    """Updates made when it began."""
    batches: int = 0
    """Batches that the script took."""
    rows: int = 0
    """Rows in them, as far as the sampler says."""
    exhausted: bool = False
    shortened: bool = False
    over: bool = False
    updates: int = 0
    """Optimizer steps while it was the innermost pass."""
    pending: int = 0
    """Batches since the latest of them."""
    forwards: int = 0
    samples: Any = None
    """What the dataset gave for the batch that is being collated."""
    model: int | None = None
    """The number of the first model that was called in it."""
    trains: bool = False
    """Whether a backward pass came from one of its batches."""

    @property
    def dataset(self) -> Any:
        return self.loader.dataset


@dataclass(eq=False)
class Batch:
    """A batch that a pass gave."""

    of: Pass
    number: int
    """Over all passes."""
    indices: Any
    """What the sampler drew for it; None where that is not known."""
    samples: Any
    """What the dataset gave, before they were collated; None where workers did that."""
    data: Any
    where: str | None


@dataclass(eq=False)
class Forward:
    """One call of a module that is not inside another module's."""

    number: int
    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    output: Any
    batch: Batch | None
    gradients: bool
    """Whether its outputs can be differentiated."""
    where: str | None

    @property
    def logits(self) -> torch.Tensor | None:
        """(rows, classes), or whatever the model gives first."""
        output = self.output
        if isinstance(output, Mapping):
            output = output.get("logits")
        elif isinstance(output, (tuple, list)):
            output = next((each for each in output if torch.is_tensor(each) and each.dim() > 0), None)
        elif not torch.is_tensor(output):
            output = getattr(output, "logits", None)
        return output if torch.is_tensor(output) and output.is_floating_point() and output.dim() > 0 else None

    @property
    def loss(self) -> torch.Tensor | None:
        """The loss that the model itself computed."""
        found = self.output.get("loss") if isinstance(self.output, Mapping) else getattr(self.output, "loss", None)
        return found if torch.is_tensor(found) else None

    @cached_property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that the model was given, by the names of its parameters."""
        named = {name: value for name, value in self.kwargs.items() if torch.is_tensor(value)}
        for name, value in zip(positional(self.model) if self.args else (), self.args, strict=False):
            if torch.is_tensor(value):
                named[name] = value
            elif isinstance(value, Mapping):
                named |= {key: each for key, each in value.items() if torch.is_tensor(each)}
        return named


def positional(model: nn.Module) -> list[str]:
    """The names of what a model's forward can be given by position."""
    parameters = inspect.signature(model.forward).parameters.values()
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


@dataclass(eq=False)
class Loss:
    """One call of a loss function of torch.nn.functional."""

    function: str
    input: torch.Tensor
    target: torch.Tensor
    options: Mapping[str, Any]
    value: torch.Tensor
    batch: Batch | None
    where: str | None


@dataclass(eq=False)
class Backward:
    """One backward pass."""

    number: int
    root: torch.Tensor
    scale: float
    """What a GradScaler had multiplied the loss by."""
    reached: frozenset[int] = frozenset()
    """Numbers of the forwards whose outputs it went through; known when it has ended."""
    losses: Sequence[Loss] = ()
    """The loss functions called since the backward pass before."""
    forwards: Sequence[Forward] = ()
    """The forwards since the backward pass before, as far as they are still held."""
    batch: Batch | None = None
    where: str | None = None
    inside_step: bool = False


@dataclass(eq=False)
class Clip:
    """One call of clip_grad_norm_ or clip_grad_value_."""

    parameters: Sequence[torch.Tensor]
    where: str | None


@dataclass(eq=False)
class ZeroGrad:
    where: str | None


@dataclass(eq=False)
class Step:
    """One optimizer step."""

    optimizer: Optimizer
    number: int
    """Of this optimizer, counted from 1."""
    update: int
    sampled: bool
    """Whether the tensors are looked at in this update."""
    where: str | None
    batch: Batch | None = None


@dataclass(eq=False)
class Scheduled:
    """One step of a learning rate scheduler."""

    scheduler: Any
    where: str | None


@dataclass(eq=False)
class Scored:
    """Predictions and references that a metric was given."""

    metric: str
    predictions: Sequence[Any]
    references: Sequence[Any]
    where: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: int = 0
    """Tells one metric object from another."""
    whole: bool = False
    """Whether the metric is computed from these alone."""


@dataclass(eq=False)
class Loaded:
    """A state that was loaded into a module or an optimizer."""

    into: Any
    state: Mapping[str, Any]
    unexpected: Sequence[str] = ()
    strict: bool = True
    where: str | None = None
