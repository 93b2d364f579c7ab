"""What happens in a training loop, as events; and facts, which are what it comes to.

Both are frozen dataclasses. An event is what an instrument reports: a batch, a forward, an optimizer step. A fact is
made from events by a recogniser (:mod:`harness.watch.bus`): the gradients that an update used, the rows of a pass that
is over. They are looked at once, when they are told, and then let go: who wants to know something later keeps that, and
not the event, which may hold a whole batch and its graph.

One update of a loop over a DataLoader comes as::

    PassBegins  Batch                        # for batch in loader
    Forward                                  # model(inputs)
    LossCall, in BackwardBegins and Backward # loss = cross_entropy(…); loss.backward()
    StepBegins  Step                         # optimizer.step()
    PassEnds … End                           # and when the script is over
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import NoneType
from typing import Any, ClassVar, Literal, NamedTuple, dataclass_transform, get_args, get_type_hints
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from harness.torch_objects import is_dense


@dataclass(eq=False)
class Pass:
    """One pass over a DataLoader: no event, but what the events of its batches have in common. It changes."""

    loader: DataLoader[Any]
    number: int
    """Number of the pass among those of its loader, counted from 1."""
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
    trainable: bool = False
    """Whether one of them has parameters that can be trained."""
    outputs: list[list[StorageWeakRef]] = field(default_factory=list)
    """Where the outputs of the first calls are in memory, for as long as a pass may be shortened."""
    scored: bool = False
    """Whether something was computed that may score what a model said in it: a loss, a comparison with labels."""
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
    def may_go_on(self) -> bool:
        """Whether the script holds its iterator, which has more to give: another pass may be within this one."""
        more = not self.exhausted and not self.shortened and (self.planned is None or self.batches < self.planned)
        return more and self.batches > 0 and self.iterator is not None and self.iterator() is not None

    @property
    def keeps_outputs(self) -> bool:
        """Whether the script still holds what each of the first calls gave, but for the latest, which it may use now.

        What several calls gave alike is the model's own, a parameter perhaps.
        """
        calls = self.outputs if len(self.outputs) < self.forwards else self.outputs[:-1]
        seen = Counter(each.cdata for call in calls for each in call)
        held = [[seen[each.cdata] == 1 and not each.expired() for each in call] for call in calls]  # type: ignore[no-untyped-call]
        return bool(held) and all(map(any, held))

    @property
    def dataset(self) -> Any:
        return self.loader.dataset


class NotKnown(Exception):
    """Raised where what a fact is asked for cannot be told; the message is the note that the outcome has of it."""


class Position(NamedTuple):
    """Where a loop is when an event or a fact is told."""

    update: int = 1
    """The number of the update that the loop works towards or has just made, counted from 1."""
    updates_made: int = 0
    sampled: bool = True
    """Whether tensors are looked at."""
    complete: bool = True
    """Whether the loop has not been cut short: what has not come by its end never comes."""
    in_pass: int | None = None
    """The number of the pass over a DataLoader that the latest batch is of, counted from 1 for each loader."""


START = Position()


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happened. The bus says where the loop was when it told it (``at``)."""

    of_run: ClassVar[bool] = False
    """Whether it is about the run and not about one of its updates."""
    at: Position = field(default=START, kw_only=True, repr=False)


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=True)
@dataclass(frozen=True, eq=False, kw_only=True)
class Fact(Event):
    """What a run did, as data: what happened, never whether that is wrong. Its recogniser makes it.

    A subclass is a frozen dataclass whose fields are given by name.
    """

    needs: ClassVar[str] = "training that it fits"
    """What must happen for the fact to be made, as it reads after "no": "learning rate scheduler"."""
    in_windows: ClassVar[Literal["none", "first", "all"]] = "none"
    """Whether it is right where only a few updates at a time are seen (:mod:`harness.watch.windows`): the first ones,
    which are seen from the beginning, or any. A fact that takes for absent what was not seen, that looks at a whole
    epoch, evaluation or schedule, calls a model again or copies what is large is made in none."""
    where: str | None = None
    """FILE:LINE of the user's line that it is about."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, kw_only=True)(cls)


# Data


@dataclass(frozen=True, eq=False)
class LoaderMade(Event):
    of_run = True
    loader: DataLoader[Any]
    where: str | None


@dataclass(frozen=True, eq=False)
class PassBegins(Event):
    of: Pass


@dataclass(frozen=True, eq=False)
class Batch(Event):
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


@dataclass(frozen=True, eq=False)
class PassEnds(Event):
    """A pass is over: it was exhausted, shortened, left, or the same loader began another."""

    of: Pass


@dataclass(frozen=True, eq=False)
class Drawn(Event):
    """The script drew a permutation."""

    permutation: torch.Tensor
    where: str | None


# Forward, loss, backward


@dataclass(frozen=True, eq=False)
class Forward(Event):
    """One call of a module that is not inside another module's."""

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
    losses: Sequence[LossCall] = ()
    """The loss functions called within it."""
    parts: Collection[nn.Module] = ()
    """The module itself, and those that were called within it, as far as torch's own call was seen."""

    @cached_property
    def logits(self) -> torch.Tensor | None:
        """(rows, classes), or whatever the model gives first; of one that gives only its loss, what that is of."""
        logits = logits_in(self.output)
        if logits is not None or len(self.losses) != 1:
            return logits
        given = self.losses[0].input
        return given.movedim(1, -1) if given.dim() > 2 else given  # a loss function takes (rows, classes, places)

    @cached_property
    def loss(self) -> torch.Tensor | None:
        """The loss that the model itself computed."""
        output = self.output
        if isinstance(output, (tuple, list)):
            tensors = [each for each in output if torch.is_tensor(each)]
            output = tensors[0] if len(tensors) == 1 else None
        if torch.is_tensor(output):
            return output if output.dim() == 0 and output.is_floating_point() else None
        found = held(output, "loss")
        return found if torch.is_tensor(found) else None

    @property
    def outputs(self) -> list[torch.Tensor]:
        """The tensors that it gave, each once: the logits, the loss, and others beside them."""
        output = self.output
        others: Any = ()
        with suppress(Exception):  # of a mapping of the script's own
            others = output.values() if isinstance(output, Mapping) else output
        others = others if isinstance(others, (list, tuple, ValuesView)) else getattr(output, "__dict__", {}).values()
        found = (logits_in(output), self.loss, output, *others)
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


def held(output: Any, name: str) -> Any:
    """What a model's output holds under a name; what its class computes is the script's to ask for."""
    if isinstance(getattr(type(output), name, None), (property, cached_property)):
        return None
    with suppress(Exception):  # of a class that finds its entries itself
        return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
    return None


def logits_in(output: Any) -> torch.Tensor | None:
    """What a model says, of what its forward returned."""
    if isinstance(output, (tuple, list)):
        output = next((each for each in output if torch.is_tensor(each) and each.dim() > 0), None)
    elif not torch.is_tensor(output):
        output = held(output, "logits")
    return output if torch.is_tensor(output) and output.is_floating_point() and output.dim() > 0 else None


_positional: WeakKeyDictionary[Any, list[str]] = WeakKeyDictionary()
"""Names of positional parameters by forward function: reading a signature takes longer than all else that is done for a
call."""


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
    wrapped = getattr(model, "module", None)
    if not names and isinstance(wrapped, nn.Module):
        return positional(wrapped)  # it hands on what it is given, as DistributedDataParallel and Fabric's module do
    if function is not None:
        _positional[function] = names
    return names


@dataclass(frozen=True, eq=False)
class InnerForward(Forward):
    """One call of a pretrained model inside a module of the script's own."""


IGNORED = -100
"""The target that torch's losses of classes leave out, unless they are told otherwise."""

LOSSES = (
    "cross_entropy",
    "nll_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "kl_div",
)
"""Functions of torch.nn.functional that compute a loss of what a model says and of targets."""


@dataclass(frozen=True, eq=False)
class LossCall(Event):
    """One call of a loss function of torch.nn.functional; told where its value can be differentiated."""

    function: str
    input: torch.Tensor
    target: torch.Tensor
    options: Mapping[str, Any]
    value: torch.Tensor
    batch: Batch | None
    where: str | None
    by_hand: bool = False
    """Whether the script has written it itself: then it is told of when it is differentiated, in that line."""

    @property
    def of_classes(self) -> bool:
        """Whether it takes logits, or log-probabilities, of classes."""
        return self.function in ("cross_entropy", "nll_loss")

    @property
    def ignored(self) -> int | None:
        """The number of the class whose targets it leaves out; None where targets are not numbers of classes."""
        by_class = self.of_classes and not self.target.is_floating_point()
        return self.options.get("ignore_index", IGNORED) if by_class else None

    @property
    def counted(self) -> torch.Tensor:
        """Mask of the same shape as the target: which of its numbers have a part in the loss."""
        target = self.target.detach()
        return torch.ones_like(target, dtype=torch.bool) if self.ignored is None else target != self.ignored

    @property
    def targets(self) -> torch.Tensor | int:
        """How many have; where some are left out, a tensor for which nobody waits yet."""
        return self.target.numel() if self.ignored is None else self.counted.sum()

    @property
    def reduction(self) -> str:
        """ "mean", "sum" or "none"."""
        return str(self.options.get("reduction", "mean"))

    @property
    def is_mean(self) -> bool:
        """Whether it is one number, the mean over the targets that count."""
        return self.value.dim() == 0 and self.reduction == "mean"

    @property
    def is_weighted(self) -> bool:
        """Whether the script weighs classes or targets."""
        return self.options.get("weight") is not None


@dataclass(frozen=True, eq=False)
class Pairing(Event):
    """The script subtracted, multiplied or compared two tensors of which every number met every one of the other."""

    sign: str
    """-, *, == or !=; of products those that can be differentiated."""
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

    sign: str
    """+, -, * or /."""
    parts: tuple[Any, Any]
    value: torch.Tensor
    where: str | None


@dataclass(frozen=True, eq=False)
class SignedLoss(Event):
    """One call of a loss function of torch.nn.functional whose targets say which of two is meant."""

    function: str
    target: torch.Tensor
    where: str | None


@dataclass(frozen=True, eq=False)
class AlignmentLoss(Event):
    """One call of ctc_loss, which finds itself which part of a row says which target."""

    targets: torch.Tensor
    """(rows, places), or those of all rows in one list."""
    lengths: Any
    """Targets of each row."""
    places: Any
    """Places of each row that the model says something of."""
    blank: int
    where: str | None


@dataclass(frozen=True, eq=False)
class Scored(Event):
    """A loss without a graph was computed, or tensors were compared, after a forward that cannot be differentiated."""

    forward: Forward
    loss: LossCall | None = None
    """The call that computed it; None where tensors were compared."""
    parts: tuple[torch.Tensor, torch.Tensor] | None = None
    """Minuend and subtrahend of a difference whose absolute value or square was taken."""
    agrees: torch.Tensor | None = None
    """Mask of equal elements, for tensors that were compared with ``==``."""

    @property
    def by_row(self) -> bool:
        """Whether it is a loss of each row, and not of all of them."""
        return self.loss is not None and self.loss.value.dim() > 0


@dataclass(frozen=True, eq=False)
class ScoredInGraph(Event):
    """A loss was computed, or tensors were compared, after a forward that can be differentiated."""

    forward: Forward
    loss: LossCall | None = None
    """The call that computed it; None where tensors were compared."""


@dataclass(frozen=True, eq=False)
class Reported(Event):
    """The script said something: it printed or logged it."""

    text: str
    where: str | None


@dataclass(frozen=True, eq=False)
class Thresholded(Event):
    """What a model has just said was compared with one number, to say which rows are of a class."""

    forward: Forward
    threshold: float
    where: str | None


@dataclass(frozen=True, eq=False)
class BackwardBegins(Event):
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

    reached: frozenset[int] = frozenset()
    """Numbers of the forwards whose outputs it went through."""
    scaled: bool = False
    """Whether it went through a loss that a GradScaler has multiplied."""


@dataclass(frozen=True, eq=False)
class AcceleratorBackward(Event):
    """A backward pass by an Accelerator is about to begin."""

    steps: int
    """Backward passes of which one update is to be made."""
    entered: bool
    """Whether the script has entered its ``accumulate`` before."""
    where: str | None


# Gradients and updates


@dataclass(frozen=True, eq=False)
class Clip(Event):
    """One call of clip_grad_norm_ or clip_grad_value_."""

    parameters: Sequence[torch.Tensor]
    where: str | None
    used_up: bool = False
    """Whether they were given as an iterator that had nothing left."""
    limit: float | None = None
    """The largest norm, or value, that is left."""
    by_value: bool = False


@dataclass(frozen=True, eq=False)
class ZeroGrad(Event):
    of: Any
    """The optimizer or the module whose gradients are cleared."""
    where: str | None


@dataclass(frozen=True, eq=False)
class Unscale(Event):
    """A GradScaler takes its factor out of the gradients of an optimizer."""

    optimizer: Optimizer


@dataclass(frozen=True, eq=False)
class AutocastLeft(Event):
    """The outermost block under autocast was left, and with it the copies of weights in half precision."""


@dataclass(frozen=True, eq=False)
class SkippedStep(Event):
    """A GradScaler left an update out, because gradients were not finite."""

    optimizer: Optimizer


@dataclass(frozen=True, eq=False)
class StepBegins(Event):
    optimizer: Optimizer
    number: int
    """Number of the step among those of its optimizer, counted from 1."""
    update: int
    sampled: bool
    """Whether the tensors are looked at in this update."""
    where: str | None
    batch: Batch | None = None
    made: str | None = None
    """Where the optimizer was made, or else where it steps."""


@dataclass(frozen=True, eq=False)
class Step(StepBegins):
    """An optimizer step has been made."""


@dataclass(frozen=True, eq=False)
class SchedulerStep(Event):
    """One step of a learning rate scheduler."""

    scheduler: Any
    where: str | None
    metric: float | None = None
    """What a ReduceLROnPlateau was given."""


# Metrics


@dataclass(frozen=True, eq=False)
class MetricCall(Event):
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
    value: Any = None
    """What it came to, where it was computed."""


@dataclass(frozen=True, eq=False)
class RankingCall(Event):
    """Scores and references of two classes that a metric of a ranking was given."""

    metric: str
    scores: Sequence[Any]
    references: Sequence[Any]
    where: str | None


# States


@dataclass(frozen=True, eq=False)
class LoadBegins(Event):
    """A state is about to be loaded into a module."""

    of_run = True
    into: Any
    state: Mapping[str, Any]
    strict: bool = True
    where: str | None = None


@dataclass(frozen=True, eq=False)
class Load(LoadBegins):
    """A state was loaded into a module, an optimizer or a scheduler."""

    unexpected: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class FileRead(Event):
    """Tensors were read from a file, and what may hold them."""

    of_run = True
    path: str | None
    """Absolute; None of what is no file."""
    found: Any


@dataclass(frozen=True, eq=False)
class StateAsked(Event):
    """The state of a module was asked for, as it is before it is saved."""

    module: nn.Module
    where: str | None
    state: Any = None
    """What was given; None where the module saves it itself."""


@dataclass(frozen=True, eq=False)
class Save(Event):
    what: Any
    where: str | None
    path: str | None = None
    """The file; None where it is a folder, or no path at all."""


@dataclass(frozen=True, eq=False)
class Renamed(Event):
    """A file or folder got another name, as one does that was written under a temporary one."""

    source: str
    target: str
    """Both absolute."""


@dataclass(frozen=True, eq=False)
class ModelSaved(Event):
    """``save_pretrained`` of transformers or PEFT has written a model to a folder."""

    model: Any
    folder: str
    where: str | None


# What the script makes


@dataclass(frozen=True, eq=False)
class FromPretrained(Event):
    """A model was loaded from a checkpoint; ``info`` are the missing, unexpected and mismatched keys."""

    of_run = True
    model: Any
    info: Mapping[str, Any]
    where: str | None


@dataclass(frozen=True, eq=False)
class ModelMade(Event):
    """A pretrained model's class was instantiated, and not from a checkpoint."""

    of_run = True
    model: nn.Module


@dataclass(frozen=True, eq=False)
class ScalerFitted(Event):
    """A scaler of scikit-learn was fitted. Both are copies: it may be fitted again, and the rows written."""

    of_run = True
    scaler: Any
    rows: Any
    """(rows, columns)."""
    where: str | None


@dataclass(frozen=True, eq=False)
class Generated(Event):
    """``generate()`` of a model of transformers has written texts. ``tokens``: (rows, tokens), with the start."""

    model: Any
    tokens: torch.Tensor
    where: str | None


@dataclass(frozen=True, eq=False)
class TokenizerMade(Event):
    of_run = True
    tokenizer: Any


@dataclass(frozen=True, eq=False)
class Encode(Event):
    """A tokenizer was called; ``encodings`` are a fast tokenizer's, else None."""

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
class Rendered(Event):
    """A chat template has written a conversation, or several."""

    template: str
    """The template, or the templates by their names, as text."""
    conversation: Any
    tools: Any
    where: str | None


@dataclass(frozen=True, eq=False)
class TokenizerSaved(Event):
    """``save_pretrained`` has written a tokenizer to a folder."""

    tokenizer: Any
    folder: str
    where: str | None


@dataclass(frozen=True, eq=False)
class DatasetMade(Event):
    """A dataset of the library datasets was made, or its columns were changed."""

    of_run = True
    dataset: Any


@dataclass(frozen=True, eq=False)
class RowsPrepared(Event):
    """``filter`` or ``map`` of the library datasets made another number of rows of those of a dataset."""

    of_run = True
    by: str
    rows: int
    """Before."""
    made: int
    where: str | None


@dataclass(frozen=True, eq=False)
class TrainerMade(Event):
    of_run = True
    trainer: Any
    where: str | None


@dataclass(frozen=True, eq=False)
class MetricMonitored(Event):
    """A callback was made that keeps the best state by a metric, or stops when it gets worse."""

    of_run = True
    callback: str
    metric: str
    greater: bool
    """Whether a larger metric is better for it."""
    where: str | None


@dataclass(frozen=True, eq=False)
class EmbeddingsResized(Event):
    """A model of transformers was given room for another number of tokens."""

    of_run = True
    embedding: nn.Module
    before: int
    after: int
    where: str | None


@dataclass(frozen=True, eq=False)
class Seeded(Event):
    """The random numbers of a library were seeded."""

    of_run = True
    library: str
    """torch, NumPy or Python."""
    seed: Any
    where: str | None


@dataclass(frozen=True)
class Option:
    """What a parser takes from the command line."""

    name: str
    """Attribute of the namespace."""
    flag: str
    where: str | None


@dataclass(eq=False)
class Reading:
    """What is read of a namespace, so far: no event, but what one has that changes."""

    names: set[str] = field(default_factory=set)
    whole: bool = False
    """Whether something was given all of it at once."""


@dataclass(frozen=True, eq=False)
class OptionsParsed(Event):
    """argparse has filled a namespace."""

    of_run = True
    options: tuple[Option, ...]
    where: str | None
    reading: Reading


@dataclass(frozen=True, eq=False)
class OptimizerMade(Event):
    of_run = True
    optimizer: Optimizer


@dataclass(frozen=True, eq=False)
class End(Event):
    """The loop is over, or was ended: what can only be said at the end is said now."""

    of_run = True


# What rests on what


def resting_on(kinds: Collection[type[Event]], *, in_part: bool = False) -> set[type[Event]]:
    """The kinds of events and facts that are not what they say where these are not told: these, those that extend or
    hold one of them, and without steps, by which updates are counted, all that are about an update.

    A field that may be None is not needed (batches are held so, of which many scripts have none); ``in_part``: those
    that hold one in such a field, too.
    """
    held = {kind: _held_in(kind, in_part) for kind in _all_kinds(Event)}
    known, found, before = held.keys(), set(kinds), -1
    while len(found) > before:
        before = len(found)
        found |= {kind for kind in known if issubclass(kind, tuple(found)) or not found.isdisjoint(held[kind])}
        if Step in found:
            found |= {kind for kind in known if not kind.of_run}
    return found


def _all_kinds(kind: type[Event]) -> Iterator[type[Event]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _all_kinds(subclass)


def _held_in(kind: type[Event], in_part: bool) -> set[type[Event]]:
    """The events that one of this kind always holds, or ``in_part`` may hold."""
    if kind.__module__ != __name__:
        return set()  # a fact: its recogniser is told of what it is made from
    hints = get_type_hints(kind)
    return {each for field in fields(kind) for each in _events_of(hints[field.name], in_part)}


def _events_of(annotation: Any, in_part: bool) -> Iterator[type[Event]]:
    parts = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Event):
        yield annotation
    elif in_part or NoneType not in parts:
        for part in parts:
            yield from _events_of(part, in_part)
