"""The monitor: where a training loop is, and what the instruments report to. Its bus tells the listeners.

What comes in are the instruments' reports; what goes out are events with their position, findings and notes::

    of = monitor.begin_pass(loader, planned=12)       # PassBegins
    monitor.give(of, indices, samples, data)          # Batch
    monitor.step_begins(optimizer); monitor.step_ends(optimizer)      # StepBegins, Step
    monitor.position                                  # Position(update=2, updates_made=1, …), as each event has it
    monitor.findings                                  # what checks have reported: monitor.report(finding)
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary, WeakMethod, ref

import torch
from torch import nn
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler
from torch.utils.hooks import RemovableHandle

from harness.findings import Finding
from harness.settings import Reload
from harness.torch_objects import TWINS, have_same_values, raw_optimizer, storages
from harness.watch import host
from harness.watch.bus import Bus, KnownListener, Listener, OutcomeListener, Suspended, raised_line
from harness.watch.events import (
    Backward,
    BackwardBegins,
    Batch,
    End,
    Event,
    Forward,
    InnerForward,
    LossCall,
    OptimizerMade,
    Pass,
    PassBegins,
    PassEnds,
    Position,
    Scored,
    ScoredInGraph,
    Step,
    StepBegins,
    Thresholded,
)
from harness.watch.guards import Guard
from harness.watch.locate import Locator
from harness.watch.shortening import Shortening
from harness.watch.written_losses import written_losses

MOST_OF_A_CHECK = 3
"""Findings of one check that are kept, each in another line: more say nothing more."""

CLOSELY = 256
"""The first updates of a loop, in which tensors are looked at as often as the options say: what is wrong from the
beginning has shown itself by then."""

SELDOM = 50
"""From then on tensors are looked at in one of so many updates, or in fewer."""

HELD = 8
"""Forwards and loss calls that are held until the next backward pass."""

ALWAYS_SAMPLED = 8
"""The first updates of a loop, and the first passes of a loader, whose tensors are all looked at."""


class UpdateLimitReached(BaseException):
    """Ends a script after the updates that were asked for."""


@dataclass(frozen=True)
class Options:
    """How a loop is watched."""

    checks: tuple[Callable[[Monitor], OutcomeListener], ...] = ()
    every: int = 50
    """Tensors are looked at in the first updates, and in each N-th from then on."""
    updates: int | None = None
    """End the script after this number of updates."""
    shortening: Shortening | None = None
    """Which batches of long passes are left out; None for none."""
    before: int = 0
    """Updates that were made before the watch began: numbers of updates go on from there."""
    reload: Reload = field(default_factory=Reload)
    sections: tuple[Callable[[Monitor], Listener], ...] = ()
    """What describes the loop beside the checks (:mod:`harness.describe`)."""


class ManualUpdate(Optimizer):
    """Stands for the updates that a script makes itself: it has parameters, and neither formula nor learning rate."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        super().__init__(parameters, {})


@dataclass
class OptimizerSeen:
    steps: int = 0
    made: str | None = None
    """Where it was made."""
    stack: tuple[tuple[str, int], ...] | None = None
    """All of the user's lines that led to its making."""
    where: str | None = None
    """Place of its latest step."""
    thread: int = 0
    """The thread that made it."""


class Monitor:
    """One training loop: what it is at, and the facts and checks that are told of it."""

    def __init__(self, options: Options, locator: Locator) -> None:
        self.options, self.locator = options, locator
        self.findings: list[Finding] = []
        """Findings in the order in which they were made; a few of each check, each on a line of its own."""
        self.notes: list[str] = []
        """What could not be decided, and why."""
        self.updates_made = options.before
        self._stepped = options.before > 0
        """Whether the update at hand has been made, by one optimizer at least."""
        self.passes: list[Pass] = []
        """Passes over loaders that are in progress."""
        self._passes_of: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        """How many passes of each loader have given a batch."""
        self.passes_shortened = False
        self.batch: Batch | None = None
        self.fetching: list[Any] = []
        """The queues of batches that are being taken ahead of their use."""
        self.optimizers: WeakKeyDictionary[Optimizer, OptimizerSeen] = WeakKeyDictionary()
        self.optimizer_made_at: list[str | None] = []
        """Where the latest optimizer was made, which may be gone; empty if none was."""
        self.schedulers: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()
        """Every scheduler seen, with where it was made."""
        self.file_read: str | None = None
        """The latest file that tensors were read from."""
        self.continued: tuple[str, str | None] | None = None
        """The latest file whose state was loaded into a model or an optimizer before the first update, and where."""
        self.scale = 1.0
        """What a GradScaler has multiplied the loss by that comes next."""
        self.scaled = False
        """Whether the latest backward pass went through a loss that a GradScaler has multiplied."""
        self.forwards: list[Forward] = []
        self.losses: list[LossCall] = []
        self.difference: tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]] | None = None
        """The latest one without a graph, and what it is of: an error, if its absolute value or square comes next."""
        self._on_leaves: list[RemovableHandle] = []
        """Hooks on outputs of models that outlive the backward pass."""
        self.reached: set[int] = set()
        self.reached_before: set[int] = set()
        """Forwards that torch.autograd.grad went through, whose gradients the next backward pass may differentiate."""
        self.in_backward = False
        self.in_step: Optimizer | None = None
        self._step: StepBegins | None = None
        """The optimizer step at hand."""
        self._step_thread = 0
        """The thread that makes it: another may fetch batches meanwhile."""
        self.loaded: float | None = None
        """When the script had loaded what it needs: it got its first batch, or made a backward pass without one."""
        self.seconds_reloading = 0.0
        """Seconds in which what the script saved was loaded again, after it was over."""
        self.stepped = False
        """Whether any optimizer stepped."""
        self.updated_by_hand = False
        """Whether the script changed parameters itself that no optimizer changed."""
        self.complete = True
        """Whether the loop went to its own end; what was to come cannot be missed where it did not."""
        self.over = False
        """Whether the end that was asked for has come; what the script does from then on is not judged."""
        self.models: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
        """A number for each module that was called."""
        self._numbers = dict.fromkeys(("batch", "forward", "backward", "model"), 0)
        self._searched = False
        self.bus = Bus(self)
        self._at_hand = WeakMethod(self.at_hand)
        self.looked_at: list[Callable[[], Iterable[torch.Tensor]]] = []
        """What listeners look at in each sampled update, beside what is at hand in all."""
        self.thread = 0
        """The thread whose loop it is; 0 for the first."""
        self.checks: list[OutcomeListener] = []
        for kind in options.checks:
            self.checks.append(self.bus.add(kind))
        self.sections: list[Listener] = [self.bus.add(each) for each in options.sections]

    # Facts and checks

    def fact(self, kind: type[KnownListener]) -> KnownListener:
        """The recogniser of this class (:meth:`Bus.recogniser`)."""
        return self.bus.recogniser(kind)

    def report(self, finding: Finding) -> None:
        """Keep a finding: of each check the first in a line, in a few lines."""
        of_check = [each.where for each in self.findings if each.check == finding.check]
        if finding.where not in of_check and len(of_check) < MOST_OF_A_CHECK:
            self.findings.append(finding)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def emit(self, event: Event) -> None:
        """Tell the listeners, where it is wanted and the loop is not over."""
        if not self.over and self.bus.wants(type(event)):
            host.at_hand(self._at_hand)
            self.bus.tell(event, self.position)

    def at_hand(self) -> Iterator[torch.Tensor]:
        """What is looked at together: what the models were last given and said, and what losses were computed from.

        Of an evaluation that is its latest batch: those before were looked at when they came.
        """
        for forward in [*(each for each in self.forwards[:-1] if each.gradients), *self.forwards[-1:]]:
            yield from forward.tensors.values()
            if forward.logits is not None:
                yield forward.logits
            if forward.loss is not None:
                yield forward.loss
        for call in self.losses:
            yield from (each for each in (call.input, call.target, call.value) if torch.is_tensor(each))
        if self.is_sampled():
            for tensors in self.looked_at:
                yield from tensors()

    @property
    def has_optimizer(self) -> bool:
        """Whether there is an optimizer of torch, so that the script needs not update anything itself."""
        return bool(self.optimizer_made_at) or any(not isinstance(each, ManualUpdate) for each in self.optimizers)

    @property
    def suspended(self) -> Suspended:
        return self.bus.suspended

    @property
    def crashed(self) -> dict[str, str]:
        return self.bus.crashed

    @property
    def guarded(self) -> Callable[[Listener, Callable[..., None]], Callable[..., Any]]:
        return self.bus.guarded

    def lose(self, kinds: Collection[type[Event]], why: str) -> set[type[Event]]:
        """What tells these events has failed: who needs them is left out, and what was kept of them is let go, so that
        nobody takes it for the latest. All kinds that are lost with them."""
        lost = self.bus.lose(kinds, why)
        if Batch in lost:
            self.batch, self.passes = None, []
        if Forward in lost:
            self.forwards, self.difference = [], None
        if LossCall in lost:
            self.losses = []
        if Backward in lost:
            self.in_backward = False
        if StepBegins in lost:
            self.in_step = self._step = None
        return lost

    def continues(self) -> None:
        """A state is loaded into a model or an optimizer."""
        if self.file_read is not None and not self.updates_made:
            self.continued = self.file_read, self.locator.where()

    @property
    def idle_optimizer(self) -> bool:
        """Whether an optimizer was made, and no gradient ever computed."""
        return bool(self.optimizer_made_at) and not self._numbers["backward"]

    # Where the loop is

    @property
    def update(self) -> int:
        """The number of the update that the loop is working towards or just made, counted from 1."""
        return max(1, self.updates_made + (not self._stepped))

    @property
    def position(self) -> Position:
        in_pass = None if self.batch is None else self.batch.of.number
        return Position(self.update, self.updates_made, self.is_sampled(), self.complete, in_pass)

    def is_sampled(self) -> bool:
        """Whether tensors are looked at: in the first updates of all and of the first passes, and in one of many."""
        new = self.batch is not None and self.batch.of.updates < 2 and self.batch.of.number <= ALWAYS_SAMPLED
        update = self.update - self.options.before
        every = self.options.every if update <= CLOSELY else max(self.options.every, SELDOM)
        return update <= ALWAYS_SAMPLED or update % every == 0 or new

    def number_of(self, model: nn.Module) -> int:
        if model not in self.models:
            self.models[model] = self._next_number("model")
        return self.models[model]

    def _next_number(self, of: str) -> int:
        self._numbers[of] += 1
        return self._numbers[of]

    def find_schedulers(self) -> list[Any]:
        """The schedulers that are alive, those made before the watch began included."""
        if not self._searched:
            self._searched = True
            objects = gc.get_objects()
            bases = (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau)
            kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, bases)}  # few, of a million objects
            found = [each for each in objects if type(each) in kinds and each not in TWINS] if kinds else []
            self.schedulers.update((each, self.schedulers.get(each)) for each in found)
        return list(self.schedulers)

    # What the instruments report

    def begin_pass(self, loader: Any, planned: int | None) -> Pass:
        self._end_own_update()
        current = None if self.batch is None else self.batch.of
        self._end_passes(each for each in self.passes if each.is_dropped and each is not current)
        self._end_passes(each for each in self.passes if each.loader is loader and not each.may_go_on)
        number = 1 + self._passes_of.get(loader, 0)
        where, thread = self.locator.where(), threading.get_ident()
        begun = Pass(loader, number, planned, where, self.updates_made, thread=thread)
        self.passes.append(begun)
        self.emit(PassBegins(begun))
        return begun

    def _end_passes(self, passes: Iterable[Pass]) -> None:
        for loop in list(passes):
            self.end_pass(loop)
            if loop in self.passes:
                self.passes.remove(loop)  # it gave no batch

    def end_pass(self, ended: Pass) -> None:
        if ended.over or ended.batches == 0:
            return
        ended.over = True
        # A loop that counts (Lightning's does) takes the last batch and never asks whether there is another.
        ended.exhausted |= ended.planned is not None and ended.batches >= ended.planned
        if ended in self.passes:
            self.passes.remove(ended)
        self.passes_shortened = self.passes_shortened or ended.shortened
        self.emit(PassEnds(ended))
        if self.batch is not None and self.batch.of is ended and not ended.trains and ended.forwards >= ended.batches:
            self.batch = None  # what comes now is of no pass

    def give(self, of: Pass, indices: Any, samples: Any, data: Any) -> None:
        self._end_own_update()
        self.loaded = self.loaded or time.perf_counter()
        self._stepped = False
        if self._step_thread == threading.get_ident():
            self.in_step = None  # one that is still there has raised
        indices = indices.tolist() if hasattr(indices, "tolist") else indices  # samplers give arrays too
        self._end_passes(
            each for each in self.passes if each.loader is of.loader and each is not of and each.is_dropped
        )
        of.batches += 1
        of.pending += 1
        self._passes_of[of.loader] = of.number
        of.rows += _count(indices)
        self.batch = Batch(of, self._next_number("batch"), indices, samples, data, self.locator.where())
        self.emit(self.batch)

    def forward(
        self,
        model: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        losses: Sequence[LossCall] = (),
        parts: Collection[nn.Module] = (),
        *,
        unhooked: bool,
    ) -> None:
        self._end_own_update()
        host.forget()
        self._stepped, self.difference = False, None
        number = self._next_number("forward")
        where = self.locator.where()
        detail: dict[str, Any] = {"where": where, "unhooked": unhooked, "losses": losses, "parts": parts}
        called = Forward(number, model, args, kwargs, output, self.batch, **detail)
        differentiable = [each for each in called.outputs if each.requires_grad]
        for tensor in differentiable:
            hook = _reaches(ref(self), self.reached, number)
            handle = tensor.register_hook(hook)  # type: ignore[no-untyped-call]
            if tensor.is_leaf:  # it lives on with its hooks: a parameter that the model gives as it is
                self._on_leaves.append(handle)
        for old in self._on_leaves[:-HELD]:
            old.remove()
        del self._on_leaves[:-HELD]
        if differentiable:
            called = replace(called, gradients=True)
        if self.batch is not None:
            self._called_in(self.batch.of, called)
        self.forwards = [*self.forwards[1 - HELD :], called]
        self.emit(called)

    def _called_in(self, of: Pass, called: Forward) -> None:
        of.forwards += 1
        of.model = of.model or self.number_of(called.model)
        of.trainable = of.trainable or any(each.requires_grad for each in called.model.parameters())
        of.scored = of.scored or bool(called.losses) or called.loss is not None
        if self.options.shortening is not None and not of.trains and len(of.outputs) < HELD:
            of.outputs.append(storages(called.outputs))

    def inner_forward(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """A pretrained model that a model of the script's own calls."""
        self.emit(InnerForward(0, model, args, kwargs, output, self.batch, where=self.locator.where()))

    def loss(self, call: LossCall) -> None:
        self.losses = [*self.losses[1 - HELD :], call]
        if self.batch is not None:
            self.batch.of.scored = True
        self.emit(call)

    def score(
        self,
        call: LossCall | None = None,
        parts: tuple[torch.Tensor, torch.Tensor] | None = None,
        agrees: torch.Tensor | None = None,
    ) -> None:
        """Something was computed that may score what a model has just said; of a difference a part has its rows.

        What it said may have a graph, of which nobody knows yet whether it is ever used.
        """
        logits = self.forwards[-1].logits if self.forwards else None
        if parts is not None and (logits is None or all(part.shape[:1] != logits.shape[:1] for part in parts)):
            return
        if self.forwards:
            latest = self.forwards[-1]
            if latest.batch is not None:
                latest.batch.of.scored = True
            self.emit(ScoredInGraph(latest, call) if latest.gradients else Scored(latest, call, parts, agrees))

    def threshold(self, values: torch.Tensor, threshold: float) -> None:
        """Numbers were compared with one: told where they are what the latest forward, without a graph, gave."""
        if not self.forwards or self.forwards[-1].gradients:
            return
        logits = self.forwards[-1].logits
        if logits is None or logits.numel() != values.numel() or values.numel() < 2:
            return
        if have_same_values(host.on_host(logits), host.on_host(values)):
            self.emit(Thresholded(self.forwards[-1], threshold, self.locator.where()))

    def subtracted(self, value: torch.Tensor, parts: tuple[torch.Tensor, torch.Tensor]) -> None:
        """A difference without a graph was computed: an error, if its absolute value or square comes next."""
        self.difference = value, parts

    def deviates(self, of: torch.Tensor) -> None:
        """The absolute value or the square of something without a graph is computed."""
        if self.difference is not None:
            (value, parts), self.difference = self.difference, None
            if value is of:
                self.score(parts=parts)

    def scales(self, factor: float) -> None:
        """A GradScaler has multiplied the loss that comes next."""
        self.scale = factor

    def goes_through_scaled(self) -> None:
        """The backward pass at hand goes through a loss that a GradScaler has multiplied."""
        self.scaled = True

    def score_class(self, predicted: torch.Tensor) -> None:
        """Numbers were compared with one class: a score, if there are as many as the model has just said rows."""
        logits = self.forwards[-1].logits if self.forwards else None
        if logits is not None and logits.dim() == 2 and len(logits) == len(predicted):
            self.score()

    def _losses_of(self, root: torch.Tensor, where: str | None) -> list[LossCall]:
        """The loss functions that were called since the backward pass before, or else what the script wrote itself."""
        if self.losses or not self.is_sampled():
            return self.losses
        calls = []
        with self.suspended, torch.no_grad():
            for function, given, target in written_losses(root, self.forwards):
                value = getattr(functional, function)(given, target)
                calls.append(LossCall(function, given, target, {}, value, self.batch, where, by_hand=True))
        return calls

    @contextmanager
    def backward(self, root: torch.Tensor) -> Iterator[None]:
        self._end_own_update()
        self.loaded = self.loaded or time.perf_counter()
        self._stepped = False
        where = self.locator.where()
        begins = BackwardBegins(
            number=self._next_number("backward"),
            root=root,
            scale=self.scale,
            losses=self._losses_of(root, where),
            forwards=self.forwards,
            batch=self.batch,
            where=where,
            inside_step=self.in_step is not None,
        )
        self.scale, self.scaled = 1.0, False
        self.reached.clear()
        self.reached |= self.reached_before
        self.reached_before.clear()
        self.in_backward = True
        try:
            self.emit(begins)
            yield
        finally:
            self.in_backward = False
        # An epoch's losses may be added up, and differentiated when its pass is over.
        for batch in (self.batch, *(each.batch for each in self.forwards if each.number in self.reached)):
            if batch is not None:
                batch.of.trains = True
        self.emit(Backward(**vars(begins), reached=frozenset(self.reached), scaled=self.scaled))
        self.forwards, self.losses, self.difference = [], [], None
        while self._on_leaves:
            self._on_leaves.pop().remove()

    def optimizer_made(self, optimizer: Optimizer) -> None:
        if hasattr(optimizer, "param_groups"):
            stack = self.locator.stack()
            made = self.locator.shown(stack[0]) if stack else None
            self.optimizer_made_at = [made]
            self.optimizers[optimizer] = OptimizerSeen(made=made, stack=stack, thread=threading.get_ident())
            self.emit(OptimizerMade(optimizer))

    def step_begins(self, optimizer: Optimizer) -> None:
        if self.in_step is not None:
            return  # a step within another's, or within its own where a subclass calls super().step()
        self.in_step, self._step_thread = optimizer, threading.get_ident()
        seen = self.optimizers.setdefault(optimizer, OptimizerSeen())
        seen.where = self.locator.where()
        number, sampled = seen.steps + 1, self.is_sampled()
        made = seen.made or seen.where
        self._step = StepBegins(optimizer, number, self.update, sampled, seen.where, self.batch, made)
        self.emit(self._step)

    def step_ends(self, optimizer: Optimizer) -> None:
        if self.in_step is not optimizer or self._step is None:
            return
        self.in_step = None
        self.stepped = True
        seen = self.optimizers[optimizer]
        seen.steps += 1
        self.emit(Step(**vars(self._step)))
        self._step = None
        if self.batch is not None:
            self.batch.of.updates += not self._stepped
            self.batch.of.pending = 0
        # Optimizers that step one after the other make one update together.
        self.updates_made += not self._stepped
        self._stepped = True
        self.forwards, self.losses = [], []
        host.forget()
        if self.options.updates is not None and self.updates_made >= self.options.updates:
            self.complete = False
            self.over = True
            raise UpdateLimitReached

    def own_update_made(self) -> None:
        """The script has made an update itself of which no more is known."""
        self.updates_made += 1
        self._stepped = self.updated_by_hand = True

    def _end_own_update(self) -> None:
        """What the script writes itself is over when something else comes."""
        if isinstance(self.in_step, ManualUpdate):
            self.step_ends(self.in_step)

    def ends(self) -> None:
        """The loop is over: what can only be said at the end is said now."""
        self.over = False
        self._end_own_update()
        for each in list(self.passes):
            self.end_pass(each)
        self.emit(End())
        self.over = True
        self.batch = None

    def let_go(self) -> None:
        """Nothing comes of this loop any more: what it holds until the next backward pass is free."""
        host.forget()
        self.forwards, self.losses, self.batch, self.difference = [], [], None, None
        while self._on_leaves:
            self._on_leaves.pop().remove()

    def summaries(self) -> dict[str, Any]:
        """What the recognisers sum up of this rank, by their names."""
        found = {}
        for recogniser in self.bus.recognisers():
            try:
                found[type(recogniser).__name__] = recogniser.summary()
            except Exception as error:  # noqa: BLE001 - one crash policy: it is left out, and named
                self.bus.leave_out(recogniser, error)
        return found

    def compare_ranks(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """On the first of several ranks, at the end: let the recognisers compare what they summed up on each.

        ``summaries`` has one mapping for each rank, this one's first, from a recogniser's name to its summary.
        """
        self.over = False
        for recogniser in self.bus.recognisers():
            mine = [summary.get(type(recogniser).__name__) for summary in summaries]
            if None not in mine:
                try:
                    recogniser.compare(mine)
                except Exception as error:  # noqa: BLE001 - one crash policy: it is left out, and named
                    self.bus.leave_out(recogniser, error)
        self.over = True

    def cut_short(self) -> None:
        """The loop did not go to its own end, or is not seen to it."""
        self.complete = False

    def leave(self) -> None:
        """It cannot be watched: nothing of it is told any more."""
        self.over = True

    def updates_by_hand(self) -> None:
        """The script changes parameters itself that no optimizer changes."""
        self.updated_by_hand = True

    def hand_over(self, other: Monitor, thread: int) -> None:
        """What a thread made and began is the other's, to which its loop turns out to belong."""
        for optimizer in [each() for each in self.optimizers.keyrefs()]:
            if optimizer is not None and self.optimizers[optimizer].thread == thread:
                self.hand_over_optimizer(optimizer, other)
        for loop in [each for each in self.passes if each.thread == thread]:
            self.passes.remove(loop)
            other.passes.append(loop)
        if self.batch is not None and self.batch.of in other.passes:
            other.batch, self.batch = self.batch, None

    def hand_over_optimizer(self, optimizer: Optimizer, other: Monitor) -> None:
        """An optimizer, and its schedulers, are of the loop that steps it."""
        other.optimizers[optimizer] = self.optimizers.pop(optimizer)
        for scheduler in [each() for each in self.schedulers.keyrefs()]:
            if scheduler is not None and raw_optimizer(getattr(scheduler, "optimizer", None)) is optimizer:
                other.schedulers[scheduler] = self.schedulers.pop(scheduler)


def _reaches(monitor: ref[Monitor], reached: set[int], number: int) -> Callable[..., Any]:
    """A tensor's hook, which holds no tensor."""

    def failed(error: Exception) -> None:
        if (known := monitor()) is not None:
            known.lose((Backward,), crash_of(error, known.update))

    return Guard(failed).guarded(lambda gradient: reached.add(number))


def crash_of(error: Exception, update: int) -> str:
    """How a part of the watch has failed, as the checks that need it are left out with."""
    return f"the watch itself crashed: {raised_line(error, update)}"


def _count(indices: Any) -> int:
    if indices is None:
        return 0
    return len(indices) if isinstance(indices, (list, tuple)) else 1
