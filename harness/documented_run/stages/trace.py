"""Trace: what a training or evaluation loop did, event by event, seen through torch's public hooks.

The loop is not changed: hooks on the model and the optimizer look on, read without drawing random numbers, and are
removed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, get_args

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import nn
from torch.optim import Optimizer

from harness.digests import digest, digests_of, joined, torch_states, weights_of
from harness.torch_objects import checksum, raw_optimizer


@dataclass(frozen=True)
class TracedForward:
    """One call of the model."""

    update: int
    """The number of the update that it leads to, counted from 1."""
    training: bool
    """Whether every module was in train mode."""
    evaluating: bool
    """Whether every module was in eval mode."""
    gradients: bool
    """Whether the outputs can be differentiated."""
    devices: tuple[str, ...]
    """Devices of the tensors that it was given."""
    rows: tuple[str, ...]
    """The rows of the batch, each told by its ids and its label."""
    loss: float | None
    predictions: tuple[int, ...]
    """The argmax of the logits of each row."""


@dataclass(frozen=True)
class TracedBackward:
    """One backward pass from the model's outputs."""

    update: int
    left_over: float
    """The largest absolute gradient that was already there when it began; 0 after a reset."""


@dataclass(frozen=True)
class TracedUpdate:
    """One optimizer step."""

    update: int
    lr: float
    """Learning rate of the first parameter group, as the step used it."""
    grad_norm: float
    """The 2-norm over all gradients, as the step used them."""
    missing: tuple[str, ...]
    """Parameters that were trainable when the trace began, and have no gradient."""
    parameters: int | None = None
    """A checksum of all parameters after the step, where it was asked for."""
    random: str | None = None
    """A digest of torch's random states at the step, where digests were asked for."""


@dataclass(frozen=True)
class MetricBatch:
    """One ``add_batch`` of a metric."""

    predictions: tuple[int, ...]
    references: tuple[int, ...]


STILL = 8
"""Smallest number of unchanged parameters in a row that is no rounding."""

TOGETHER = 32
"""Events of which rows and random states are read in one go. Between two updates, which empty the processor's caches,
the same reading takes five times as long."""

Event = TracedForward | TracedBackward | TracedUpdate | MetricBatch

EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


TOLD_BY = ("input_ids", "attention_mask", "labels")
"""What a model is given that tells its rows."""


def row_key(ids: Sequence[int], label: int) -> str:
    """A row of the data, told by its unpadded ids and its label."""
    return _key(np.asarray(ids), label)


def _key(ids: NDArray[Any], label: float) -> str:
    return xxhash.xxh3_64_hexdigest(ids.astype(np.int64, copy=False).tobytes() + f">{label}".encode())


@dataclass
class Trace:
    """Watches a model, and an optimizer where there is one, while used as a context manager."""

    model: nn.Module
    optimizer: Optimizer | None = None
    metric: Any = None
    """An Evaluate module; what its ``add_batch`` is given is recorded."""
    checksums: bool = False
    """Whether each update records a checksum of all parameters."""
    digests: bool = False
    """Whether digests of random states are kept, and in updates 1, 2, 4, 8 and so on those of each tensor."""
    on_event: Callable[[Event], None] = lambda event: None
    """Called with each event as it happens."""
    update: int = 1
    """The number of the update that the loop is working towards, counted from 1."""
    tensors: dict[int, tuple[dict[str, str], dict[str, str]]] = field(default_factory=dict)
    """Update to the digests of the weights before its step, and of the gradients that it used."""
    unchanged: dict[int, list[str]] = field(default_factory=dict)
    """Update to the parameters that were looked at, should have changed, and did not.

    Each is looked at when an update first should change it, and one at each update from then on, in turn. Of the
    latter only :data:`STILL` unchanged ones in a row count: one alone may have lost its change to rounding.
    """

    _events: list[Event] = field(default_factory=list)
    _unread: list[tuple[int, Callable[[], dict[str, Any]]]] = field(default_factory=list)
    """Places of events, and what gives the fields that were not read yet."""

    def __enter__(self) -> Trace:
        # Going through a model's modules takes longer than looking at them: once, not at every event.
        self._modules = tuple(self.model.modules())
        self._parameters = dict(self.model.named_parameters())
        self._trainable = [name for name, parameter in self._parameters.items() if parameter.requires_grad]
        self._before: dict[str, torch.Tensor] = {}
        self._unseen = set(self._trainable)
        self._still: list[str] = []
        self._handles = [self.model.register_forward_hook(self._forward_ends, with_kwargs=True)]
        if self.optimizer is not None:
            stepped = raw_optimizer(self.optimizer)
            self._handles += [
                stepped.register_step_pre_hook(self._step_begins),
                stepped.register_step_post_hook(self._step_ends),
            ]
        if self.metric is not None:
            self._add_batch = self.metric.add_batch
            self.metric.add_batch = self._metric_batch
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        if self.metric is not None:
            del self.metric.add_batch  # the instance's; its class's own is seen again
        self._read()

    @property
    def events(self) -> list[Event]:
        self._read()
        return self._events

    @property
    def forwards(self) -> list[TracedForward]:
        return [event for event in self.events if isinstance(event, TracedForward)]

    @property
    def backwards(self) -> list[TracedBackward]:
        return [event for event in self.events if isinstance(event, TracedBackward)]

    @property
    def updates(self) -> list[TracedUpdate]:
        return [event for event in self.events if isinstance(event, TracedUpdate)]

    @property
    def last_update(self) -> TracedUpdate | None:
        return next((event for event in reversed(self._events) if isinstance(event, TracedUpdate)), None)

    @property
    def metric_batches(self) -> list[MetricBatch]:
        return [event for event in self.events if isinstance(event, MetricBatch)]

    def state_dict(self) -> dict[str, Any]:
        """What was seen so far, in builtin types: of a trace that is entered, between two updates."""
        return {
            "events": [(type(event).__name__, *astuple(event)) for event in self.events],
            "update": self.update,
            "tensors": self.tensors,
            "unchanged": self.unchanged,
            "unseen": sorted(self._unseen),
            "still": self._still,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another trace of such a training was."""
        self._events = [EVENTS[kind](*values) for kind, *values in state["events"]]
        self.update = state["update"]
        self.tensors = dict(state["tensors"])
        self.unchanged = dict(state["unchanged"])
        self._unseen = set(state["unseen"])
        self._still = list(state["still"])

    def _record(self, event: Event, later: Callable[[], dict[str, Any]] | None = None) -> None:
        """Keep an event, some of whose fields are read later."""
        self._events.append(event)
        if later is not None:
            self._unread.append((len(self._events) - 1, later))
            if len(self._unread) == TOGETHER:
                self._read()
        self.on_event(event)

    def _read(self) -> None:
        unread, self._unread = self._unread, []
        for place, fields in unread:
            self._events[place] = replace(self._events[place], **fields())

    def _forward_ends(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        modes = {module.training for module in self._modules}
        loss = getattr(outputs, "loss", None)
        given = {name: kwargs[name].clone() for name in TOLD_BY if torch.is_tensor(kwargs.get(name))}
        self._record(
            TracedForward(
                update=self.update,
                training=modes == {True},
                evaluating=modes == {False},
                gradients=outputs.logits.requires_grad,
                devices=tuple(sorted({value.device.type for value in kwargs.values() if torch.is_tensor(value)})),
                rows=(),
                loss=None if loss is None else loss.item(),
                predictions=tuple(outputs.logits.detach().argmax(dim=-1).tolist()),
            ),
            lambda: {"rows": rows_of(given)},
        )
        if outputs.logits.requires_grad:
            # Called when the backward pass reaches the logits: before any parameter's gradient is added to.
            outputs.logits.register_hook(self._backward_begins)

    def _backward_begins(self, gradient: torch.Tensor) -> None:
        left = [each for p in self._parameters.values() if (each := p.grad) is not None]
        left_over = max(map(_largest, left), default=0.0)
        self._record(TracedBackward(self.update, left_over))

    def _step_begins(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = self._parameters
        used = {name: gradient for name, p in named.items() if (gradient := p.grad) is not None}
        lr = float(optimizer.param_groups[0]["lr"])
        self._made = TracedUpdate(
            update=self.update,
            lr=lr,
            grad_norm=_norm(list(used.values())),
            missing=tuple(name for name in self._trainable if name not in used),
        )
        self._random = torch_states() if self.digests else None
        if self.digests and self.update.bit_count() == 1:
            gradients = {name: digest(gradient) for name, gradient in used.items()}
            self.tensors[self.update] = weights_of(self.model), gradients
        looked_at = self._unseen | {self._trainable[self.update % len(self._trainable)]}
        self._before = {name: named[name].detach().clone() for name in looked_at if _should_change(named[name], lr)}

    def _step_ends(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        same = [name for name, before in self._before.items() if torch.equal(before, self._parameters[name])]
        if at_first := [name for name in same if name in self._unseen]:
            self.unchanged[self.update] = sorted(at_first)
        if self._before:
            self._still = [*self._still, *same] if len(same) == len(self._before) else []
        if len(self._still) >= STILL:
            self.unchanged.setdefault(self.update, list(self._still))
        self._unseen -= self._before.keys()
        self._before = {}
        made, random = self._made, self._random
        if self.checksums:
            made = replace(made, parameters=checksum(self._parameters.values()))
        self._record(made, None if random is None else lambda: {"random": joined(digests_of(random).values())})
        self.update += 1

    def _metric_batch(self, *, predictions: Any, references: Any, **kwargs: Any) -> None:
        given = (tuple(torch.as_tensor(values).tolist()) for values in (predictions, references))
        self._record(MetricBatch(*given))
        self._add_batch(predictions=predictions, references=references, **kwargs)


def _should_change(parameter: torch.Tensor, lr: float) -> bool:
    """Whether an update by about ``lr``, as Adam makes it, is more than rounding takes away again."""
    if parameter.grad is None or not _largest(parameter.grad):
        return False
    return lr > 4 * torch.finfo(parameter.dtype).eps * _largest(parameter)


def _norm(gradients: list[torch.Tensor]) -> float:
    """The 2-norm over all of them, to the bit of ``get_total_norm``, which first sorts what is of one kind mostly."""
    if len({(gradient.device, gradient.dtype) for gradient in gradients}) != 1:
        return torch.nn.utils.get_total_norm(gradients).item()
    norm: float = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))).item()
    return norm


def _largest(tensor: torch.Tensor) -> float:
    """The largest absolute number, 0 of none: in one pass, and without a tensor as large."""
    if not tensor.numel():
        return 0.0
    least, most = torch.aminmax(tensor.detach())
    return max(-least.item(), most.item())


def rows_of(batch: Mapping[str, Any]) -> tuple[str, ...]:
    """The rows of a batch, each told by its ids and its label."""
    if "input_ids" not in batch or "labels" not in batch:
        return ()
    ids, labels = batch["input_ids"].cpu().numpy(), batch["labels"].tolist()
    if "attention_mask" in batch:
        ids = [row[mask] for row, mask in zip(ids, batch["attention_mask"].cpu().numpy() != 0, strict=True)]
    return tuple(_key(row, label) for row, label in zip(ids, labels, strict=True))
