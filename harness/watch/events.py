"""What happens in a training loop, as events, and what they are told to.

An event is a frozen dataclass. It is looked at once, when it happens, and then let go: a listener that wants to know
something later keeps that, and not the event, which may hold a whole batch and its graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from harness.torch_objects import is_dense


@dataclass(eq=False)
class Pass:
    """One pass over a DataLoader: no event, but what the events of its batches have in common. It changes."""

    loader: DataLoader[Any]
    number: int
    """Of this loader, counted from 1."""
    planned: int | None
    """Batches of a whole pass; None where the loader has no length."""
    where: str | None
    updates_before: int = 0
    """Updates made when it began."""
    batches: int = 0
    """Batches that the script took."""
    rows: int = 0
    """Rows in them, as far as the sampler says."""
    exhausted: bool = False
    shortened: bool = False
    may_be_left: bool = False
    """Whether a shortened one is gone through by a loop with a break in it, which may be meant to end before."""
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
    thread: int = 0
    """The thread that began it."""
    iterator: Callable[[], Any] | None = None
    """A weak reference to what gives its batches."""

    @property
    def is_dropped(self) -> bool:
        """Whether nothing more can come of it, because the script has let go of its iterator."""
        return self.iterator is not None and self.iterator() is None

    @property
    def dataset(self) -> Any:
        return self.loader.dataset


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happened. ``handler`` names the method of :class:`Listener` that is told of it."""

    handler: ClassVar[str]


# Data


@dataclass(frozen=True, eq=False)
class PassBegins(Event):
    handler = "on_pass_begins"
    of: Pass


@dataclass(frozen=True, eq=False)
class Batch(Event):
    """A batch that a pass gave."""

    handler = "on_batch"
    of: Pass
    number: int
    """Over all passes."""
    indices: Any
    """What the sampler drew for it; None where that is not known."""
    samples: Any
    """What the dataset gave, before they were collated; None where workers did that."""
    data: Any
    where: str | None


@dataclass(frozen=True, eq=False)
class PassEnds(Event):
    """A pass is over: it was exhausted, shortened, left, or the same loader began another."""

    handler = "on_pass_ends"
    of: Pass


@dataclass(frozen=True, eq=False)
class Drawn(Event):
    """The script drew a permutation."""

    handler = "on_drawn"
    permutation: torch.Tensor
    where: str | None


# Forward, loss, backward


@dataclass(frozen=True, eq=False)
class Forward(Event):
    """One call of a module that is not inside another module's."""

    handler = "on_forward"
    number: int
    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    output: Any
    batch: Batch | None = None
    gradients: bool = False
    """Whether its outputs can be differentiated."""
    where: str | None = None
    unhooked: bool = False
    """Whether the script called the module's ``forward``, which calls no hooks."""

    @cached_property
    def logits(self) -> torch.Tensor | None:
        """(rows, classes), or whatever the model gives first."""
        return logits_in(self.output)

    @cached_property
    def loss(self) -> torch.Tensor | None:
        """The loss that the model itself computed."""
        found = self.output.get("loss") if isinstance(self.output, Mapping) else getattr(self.output, "loss", None)
        return found if torch.is_tensor(found) else None

    @property
    def outputs(self) -> list[torch.Tensor]:
        """The tensors that it gave, each once: the logits, the loss, and others beside them."""
        output = self.output
        others = output.values() if isinstance(output, Mapping) else output
        others = others if isinstance(others, (list, tuple, ValuesView)) else getattr(output, "__dict__", {}).values()
        found = (self.logits, self.loss, output, *others)
        return list({id(each): each for each in found if torch.is_tensor(each)}.values())

    @cached_property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that the model was given, by the names of its parameters; but for sparse and nested ones."""
        named = {name: value for name, value in self.kwargs.items() if is_dense(value)}
        for name, value in zip(positional(self.model) if self.args else (), self.args, strict=False):
            if is_dense(value):
                named[name] = value
            elif isinstance(value, Mapping):
                named |= {key: each for key, each in value.items() if is_dense(each)}
        return named


def logits_in(output: Any) -> torch.Tensor | None:
    """What a model says, of what its forward returned."""
    if isinstance(output, Mapping):
        output = output.get("logits")
    elif isinstance(output, (tuple, list)):
        output = next((each for each in output if torch.is_tensor(each) and each.dim() > 0), None)
    elif not torch.is_tensor(output):
        output = getattr(output, "logits", None)
    return output if torch.is_tensor(output) and output.is_floating_point() and output.dim() > 0 else None


_positional: WeakKeyDictionary[Any, list[str]] = WeakKeyDictionary()
"""By the function that a model's forward is: reading a signature takes longer than all else that is done for a call."""


def positional(model: nn.Module) -> list[str]:
    """The names of what a model's forward can be given by position."""
    function = getattr(model.forward, "__func__", None)
    if function in _positional:
        return _positional[function]
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return []  # of a scripted module
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if function is not None:
        _positional[function] = names
    return names


@dataclass(frozen=True, eq=False)
class InnerForward(Forward):
    """One call of a pretrained model inside a module of the script's own."""

    handler = "on_inner_forward"


@dataclass(frozen=True, eq=False)
class LossCall(Event):
    """One call of a loss function of torch.nn.functional; told where its value can be differentiated."""

    handler = "on_loss"
    function: str
    input: torch.Tensor
    target: torch.Tensor
    options: Mapping[str, Any]
    value: torch.Tensor
    batch: Batch | None
    where: str | None


@dataclass(frozen=True, eq=False)
class Pairing(Event):
    """The script subtracted or compared two tensors of which every number met every number of the other."""

    handler = "on_pairing"
    sign: str
    """-, == or !=."""
    one: torch.Tensor
    other: torch.Tensor
    forwards: Sequence[Forward]
    """The forwards since the backward pass before, as far as they are still held."""
    where: str | None

    @property
    def column(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The one of shape (rows, 1) and the one of shape (rows,); None where the two have other shapes."""
        column, flat = (self.one, self.other) if self.one.dim() == 2 else (self.other, self.one)
        return (column, flat) if flat.dim() == 1 and column.shape == (len(flat), 1) else None


@dataclass(frozen=True, eq=False)
class Combined(Event):
    """The script added something to a number that can be differentiated, or weighed what can be by a number."""

    handler = "on_combined"
    sign: str
    """+, - or *."""
    parts: tuple[Any, Any]
    value: torch.Tensor
    where: str | None


@dataclass(frozen=True, eq=False)
class SignedLoss(Event):
    """One call of a loss function of torch.nn.functional whose targets say which of two is meant."""

    handler = "on_signed_loss"
    function: str
    target: torch.Tensor
    where: str | None


@dataclass(frozen=True, eq=False)
class Scored(Event):
    """A loss without a graph was computed, or tensors were compared, after a forward that cannot be differentiated."""

    handler = "on_scored"
    forward: Forward
    loss: LossCall | None = None
    """The call that computed it; None where tensors were compared."""
    parts: tuple[torch.Tensor, torch.Tensor] | None = None
    """Of a difference whose absolute value or square was taken: what was subtracted from what."""
    agrees: torch.Tensor | None = None
    """Of tensors that were compared with ``==``: where they are equal."""

    @property
    def by_row(self) -> bool:
        """Whether it is a loss of each row, and not of all of them."""
        return self.loss is not None and self.loss.value.dim() > 0


@dataclass(frozen=True, eq=False)
class Thresholded(Event):
    """What a model has just said was compared with one number, to say which rows are of a class."""

    handler = "on_thresholded"
    forward: Forward
    threshold: float
    where: str | None


@dataclass(frozen=True, eq=False)
class BackwardBegins(Event):
    handler = "on_backward_begins"
    number: int
    root: torch.Tensor
    """What is differentiated."""
    scale: float
    """What a GradScaler had multiplied the loss by."""
    losses: Sequence[LossCall] = ()
    """The loss functions called since the backward pass before."""
    forwards: Sequence[Forward] = ()
    """The forwards since the backward pass before, as far as they are still held."""
    batch: Batch | None = None
    where: str | None = None
    inside_step: bool = False


@dataclass(frozen=True, eq=False)
class Backward(BackwardBegins):
    """A backward pass has ended."""

    handler = "on_backward"
    reached: frozenset[int] = frozenset()
    """Numbers of the forwards whose outputs it went through."""
    scaled: bool = False
    """Whether it went through a loss that a GradScaler has multiplied."""


@dataclass(frozen=True, eq=False)
class AcceleratorBackward(Event):
    """A backward pass by an Accelerator is about to begin."""

    handler = "on_accelerator_backward"
    steps: int
    """Backward passes of which one update is to be made."""
    entered: bool
    """Whether the script has entered its ``accumulate`` before."""
    where: str | None


# Gradients and updates


@dataclass(frozen=True, eq=False)
class Clip(Event):
    """One call of clip_grad_norm_ or clip_grad_value_."""

    handler = "on_clip"
    parameters: Sequence[torch.Tensor]
    where: str | None
    used_up: bool = False
    """Whether they were given as an iterator that had nothing left."""


@dataclass(frozen=True, eq=False)
class ZeroGrad(Event):
    handler = "on_zero_grad"
    of: Any
    """The optimizer or the module whose gradients are cleared."""
    where: str | None


@dataclass(frozen=True, eq=False)
class Unscale(Event):
    """A GradScaler takes its factor out of the gradients of an optimizer."""

    handler = "on_unscale"
    optimizer: Optimizer


@dataclass(frozen=True, eq=False)
class SkippedStep(Event):
    """A GradScaler left an update out, because gradients were not finite."""

    handler = "on_skipped_step"
    optimizer: Optimizer


@dataclass(frozen=True, eq=False)
class StepBegins(Event):
    handler = "on_step_begins"
    optimizer: Optimizer
    number: int
    """Of this optimizer, counted from 1."""
    update: int
    sampled: bool
    """Whether the tensors are looked at in this update."""
    where: str | None
    batch: Batch | None = None


@dataclass(frozen=True, eq=False)
class Step(StepBegins):
    """An optimizer step has been made."""

    handler = "on_step"


@dataclass(frozen=True, eq=False)
class SchedulerStep(Event):
    """One step of a learning rate scheduler."""

    handler = "on_scheduler_step"
    scheduler: Any
    where: str | None
    metric: float | None = None
    """What a ReduceLROnPlateau was given."""


# Metrics


@dataclass(frozen=True, eq=False)
class MetricCall(Event):
    """Predictions and references that a metric was given."""

    handler = "on_metric"
    metric: str
    predictions: Sequence[Any]
    references: Sequence[Any]
    where: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: int = 0
    """Tells one metric object from another."""
    whole: bool = False
    """Whether the metric is computed from these alone."""


@dataclass(frozen=True, eq=False)
class RankingCall(Event):
    """Scores and references of two classes that a metric of a ranking was given."""

    handler = "on_ranking"
    metric: str
    scores: Sequence[Any]
    references: Sequence[Any]
    where: str | None


# States


@dataclass(frozen=True, eq=False)
class LoadBegins(Event):
    """A state is about to be loaded into a module."""

    handler = "on_load_begins"
    into: Any
    state: Mapping[str, Any]
    strict: bool = True
    where: str | None = None


@dataclass(frozen=True, eq=False)
class Load(LoadBegins):
    """A state was loaded into a module, an optimizer or a scheduler."""

    handler = "on_load"
    unexpected: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class StateAsked(Event):
    """The state of a module was asked for, as it is before it is saved."""

    handler = "on_state_asked"
    module: nn.Module
    where: str | None
    state: Any = None
    """What was given; None where the module saves it itself."""


@dataclass(frozen=True, eq=False)
class Save(Event):
    handler = "on_save"
    what: Any
    where: str | None
    path: str | None = None
    """The file; None where it is a folder, or no path at all."""


@dataclass(frozen=True, eq=False)
class ModelSaved(Event):
    """``save_pretrained`` of transformers or PEFT has written a model to a folder."""

    handler = "on_model_saved"
    model: Any
    folder: str
    where: str | None


# What the script makes


@dataclass(frozen=True, eq=False)
class FromPretrained(Event):
    """A model was loaded from a checkpoint; ``info`` are the missing, unexpected and mismatched keys."""

    handler = "on_from_pretrained"
    model: Any
    info: Mapping[str, Any]
    where: str | None


@dataclass(frozen=True, eq=False)
class ModelMade(Event):
    """A pretrained model's class was instantiated, and not from a checkpoint."""

    handler = "on_model_made"
    model: nn.Module


@dataclass(frozen=True, eq=False)
class TokenizerMade(Event):
    handler = "on_tokenizer_made"
    tokenizer: Any


@dataclass(frozen=True, eq=False)
class Encode(Event):
    """A tokenizer was called; ``encodings`` are a fast tokenizer's, else None."""

    handler = "on_encode"
    encodings: Sequence[Any] | None
    where: str | None
    texts: Any = None
    """What it was given: a text, several, or several lists of words."""
    pairs: Any = None
    """The second text of each; None where there are none."""
    overflows: bool = False
    """Whether what is cut off comes as further rows."""
    tokenizer: Any = None


@dataclass(frozen=True, eq=False)
class TokenizerSaved(Event):
    """``save_pretrained`` has written a tokenizer to a folder."""

    handler = "on_tokenizer_saved"
    tokenizer: Any
    folder: str
    where: str | None


@dataclass(frozen=True, eq=False)
class DatasetMade(Event):
    """A dataset of the library datasets was made, or its columns were changed."""

    handler = "on_dataset_made"
    dataset: Any


@dataclass(frozen=True, eq=False)
class TrainerMade(Event):
    handler = "on_trainer_made"
    trainer: Any
    where: str | None


@dataclass(frozen=True, eq=False)
class EmbeddingsResized(Event):
    """A model of transformers was given room for another number of tokens."""

    handler = "on_embeddings_resized"
    embedding: nn.Module
    before: int
    after: int
    where: str | None


@dataclass(frozen=True, eq=False)
class OptimizerMade(Event):
    handler = "on_optimizer_made"
    optimizer: Optimizer


@dataclass(frozen=True, eq=False)
class End(Event):
    """The loop is over, or was ended: what can only be said at the end is said now."""

    handler = "on_end"


class Listener:
    """What events are told to: facts, checks, recorders. A subclass overrides the handlers that it needs.

    Raises:
        TypeError: when a subclass is made that has an ``on_…`` method of another name, which nothing would call.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in vars(cls):
            if name.startswith("on_") and name not in HANDLERS:
                raise TypeError(f"{cls.__qualname__}.{name} handles no event; the handlers are {', '.join(HANDLERS)}")

    @classmethod
    def handlers(cls) -> list[str]:
        """The handlers that this class overrides."""
        return [name for name in HANDLERS if getattr(cls, name) is not getattr(Listener, name)]

    def on_pass_begins(self, event: PassBegins) -> None: ...
    def on_batch(self, event: Batch) -> None: ...
    def on_pass_ends(self, event: PassEnds) -> None: ...
    def on_drawn(self, event: Drawn) -> None: ...
    def on_forward(self, event: Forward) -> None: ...
    def on_inner_forward(self, event: InnerForward) -> None: ...
    def on_loss(self, event: LossCall) -> None: ...
    def on_scored(self, event: Scored) -> None: ...
    def on_thresholded(self, event: Thresholded) -> None: ...
    def on_ranking(self, event: RankingCall) -> None: ...
    def on_pairing(self, event: Pairing) -> None: ...
    def on_combined(self, event: Combined) -> None: ...
    def on_signed_loss(self, event: SignedLoss) -> None: ...
    def on_backward_begins(self, event: BackwardBegins) -> None: ...
    def on_backward(self, event: Backward) -> None: ...
    def on_accelerator_backward(self, event: AcceleratorBackward) -> None: ...
    def on_clip(self, event: Clip) -> None: ...
    def on_zero_grad(self, event: ZeroGrad) -> None: ...
    def on_unscale(self, event: Unscale) -> None: ...
    def on_skipped_step(self, event: SkippedStep) -> None: ...
    def on_step_begins(self, event: StepBegins) -> None: ...
    def on_step(self, event: Step) -> None: ...
    def on_scheduler_step(self, event: SchedulerStep) -> None: ...
    def on_metric(self, event: MetricCall) -> None: ...
    def on_load_begins(self, event: LoadBegins) -> None: ...
    def on_load(self, event: Load) -> None: ...
    def on_state_asked(self, event: StateAsked) -> None: ...
    def on_save(self, event: Save) -> None: ...
    def on_model_saved(self, event: ModelSaved) -> None: ...
    def on_from_pretrained(self, event: FromPretrained) -> None: ...
    def on_model_made(self, event: ModelMade) -> None: ...
    def on_tokenizer_made(self, event: TokenizerMade) -> None: ...
    def on_encode(self, event: Encode) -> None: ...
    def on_tokenizer_saved(self, event: TokenizerSaved) -> None: ...
    def on_dataset_made(self, event: DatasetMade) -> None: ...
    def on_trainer_made(self, event: TrainerMade) -> None: ...
    def on_embeddings_resized(self, event: EmbeddingsResized) -> None: ...
    def on_optimizer_made(self, event: OptimizerMade) -> None: ...
    def on_end(self, event: End) -> None: ...


HANDLERS = tuple(name for name in vars(Listener) if name.startswith("on_"))
"""Every handler, in the order of a loop."""
