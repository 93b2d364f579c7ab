"""The monitor: knows where a training loop is, and tells facts and checks what happens in it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler
from torch.utils.hooks import RemovableHandle

from harness.findings import Finding, shortened
from harness.settings import Reload
from harness.torch_objects import TWINS, is_transformed, raw_optimizer
from harness.watch.events import (
    Backward,
    BackwardBegins,
    Batch,
    End,
    Event,
    Forward,
    InnerForward,
    Listener,
    LossCall,
    OptimizerMade,
    Pass,
    PassBegins,
    PassEnds,
    Scored,
    Step,
    StepBegins,
    Thresholded,
)
from harness.watch.locate import Locator, from_signal_handler
from harness.watch.shortening import Shortening

MOST_OF_A_CHECK = 3
"""Findings of one check that are kept, each in another line: more say nothing more."""

CLOSELY = 256
"""The first updates of a loop, in which tensors are looked at as often as the options say: what is wrong from the
beginning has shown itself by then. Neither half nor double of it changes a verdict of the corpus."""

SELDOM = 50
"""From then on tensors are looked at in one of so many updates, or in fewer. Neither half nor double of it changes a
verdict of the corpus."""

HELD = 8
"""Forwards and loss calls that are held until the next backward pass."""

ALWAYS_SAMPLED = 8
"""The first updates of a loop, and the first passes of a loader, whose tensors are all looked at."""

MOST_STOPS = 100
"""How often a script may go on after it was ended, before its process is left. More than it has loops. Neither half nor
double of it changes a verdict of the corpus."""

KnownFact = TypeVar("KnownFact", bound=Listener)


class AnyCheck(Protocol):
    """What the monitor needs of a check (:class:`harness.watch.check.Check`)."""

    id: ClassVar[str]
    looked: bool

    @classmethod
    def handlers(cls) -> list[str]: ...
    def lacks(self) -> str: ...
    def summary(self) -> Any: ...
    def compare(self, summaries: Sequence[Any]) -> None: ...


class UpdateLimitReached(BaseException):
    """Ends a script after the updates that were asked for."""


@dataclass(frozen=True)
class Options:
    """How a loop is watched."""

    checks: tuple[Callable[[Monitor], AnyCheck], ...] = ()
    every: int = 50
    """Tensors are looked at in the first updates, and in each N-th from then on."""
    updates: int | None = None
    """End the script after this number of updates."""
    shortening: Shortening | None = None
    """Which batches of long passes are left out; None for none."""
    before: int = 0
    """Updates that were made before the watch began: numbers of updates go on from there."""
    reload: Reload = field(default_factory=Reload)


@dataclass
class OptimizerSeen:
    steps: int = 0
    made: str | None = None
    """Where it was made."""
    stack: tuple[tuple[str, int], ...] | None = None
    """All of the user's lines that led to its making."""
    where: str | None = None
    """Of its latest step."""
    thread: int = 0
    """The thread that made it."""


class _Suspended(threading.local):
    """Entered for each event: a context manager by contextlib takes more calls than most listeners make."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


class Monitor:
    """One training loop: what it is at, and the facts and checks that are told of it."""

    def __init__(self, options: Options, locator: Locator) -> None:
        self.options, self.locator = options, locator
        self.findings: list[Finding] = []
        """In their order; of each check a few, in lines of their own."""
        self.notes: list[str] = []
        """What could not be decided, and why."""
        self.crashed: dict[str, str] = {}
        """Checks that failed themselves, and how."""
        self.updates_made = options.before
        self._stepped = options.before > 0
        """Whether the update at hand has been made, by one optimizer at least."""
        self.passes: list[Pass] = []
        """Those that are not over."""
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
        self.in_backward = False
        self.in_step: Optimizer | None = None
        self._step: StepBegins | None = None
        """The optimizer step at hand."""
        self._step_thread = 0
        """The thread that makes it: another may fetch batches meanwhile."""
        self.loaded: float | None = None
        """When the script had loaded what it needs: it got its first batch, or made a backward pass without one."""
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
        self.suspended = _Suspended()
        """What happens within it in this thread is not the script's doing, and nobody is told."""
        self._listeners: dict[str, list[tuple[Any, Callable[[Any], None]]]] = {}
        self._facts: dict[type[Listener], Listener] = {}
        self._needs: dict[Any, list[Listener]] = {}
        """Which facts a listener asked for, while it was made."""
        self._making: list[list[Listener]] = []
        self._left_out: set[object] = set()
        """Facts and checks that failed themselves, and the checks that need such a fact."""
        self.thread = 0
        """The thread whose loop it is; 0 for the first."""
        self.checks: list[AnyCheck] = []
        for kind in options.checks:
            self.checks.append(self._add(kind))

    # Facts and checks

    def _add(self, kind: Callable[[Monitor], Any]) -> Any:
        self._making.append([])
        listener = kind(self)
        self._needs[listener] = self._making.pop()
        for handler in listener.handlers():
            self._listeners.setdefault(handler, []).append((listener, getattr(listener, handler)))
        return listener

    def fact(self, kind: type[KnownFact]) -> KnownFact:
        """The fact of this class: the same one for every check, made when the first asks for it.

        Facts are asked for in ``__init__``, so that they are told of an event before those that need them.
        """
        if kind not in self._facts:
            self._facts[kind] = self._add(kind)
            facts = list(self._facts.values())
            for listeners in self._listeners.values():  # facts first; the sort keeps the order of their making
                listeners.sort(key=lambda each: each[0] not in facts)
        fact = self._facts[kind]
        if self._making:
            self._making[-1].append(fact)
        assert isinstance(fact, kind)
        return fact

    def report(self, finding: Finding) -> None:
        """Keep a finding: of each check the first in a line, in a few lines."""
        of_check = [each.where for each in self.findings if each.check == finding.check]
        if finding.where not in of_check and len(of_check) < MOST_OF_A_CHECK:
            self.findings.append(finding)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def emit(self, event: Event) -> None:
        """Tell the listeners; one that raises is left out, unless it was the script's own signal handler that did."""
        listeners = self._listeners.get(event.handler)
        if not listeners or self.over:
            return
        left_out = self._left_out
        with self.suspended:
            for listener, handle in listeners:
                if left_out and listener in left_out:
                    continue  # since this very event
                try:
                    handle(event)
                except Exception as error:
                    if from_signal_handler(error):
                        raise
                    self._leave_out(listener, error)

    def guarded(self, listener: object, handle: Callable[[Any], None]) -> Callable[[Any], None]:
        """A hook that a listener puts on something of the script's: what it raises is not the script's."""

        def guarded(told: Any) -> None:
            try:
                with self.suspended:
                    if listener not in self._left_out:
                        handle(told)
            except Exception as error:
                if from_signal_handler(error):
                    raise
                self._leave_out(listener, error)

        return guarded

    def _leave_out(self, failed: object, error: Exception) -> None:
        """A check that fails itself leaves out only itself; a fact that does, the checks that need it."""
        if os.environ.get("HARNESS_DEBUG"):
            raise error
        gone: set[object] = {failed}
        left = -1
        while len(gone) > left:
            left = len(gone)
            gone |= {each for each, facts in self._needs.items() if gone.intersection(facts)}
        self._left_out |= gone
        for handler, listeners in self._listeners.items():
            self._listeners[handler] = [each for each in listeners if each[0] not in gone]
        for each in self.checks:
            if each in gone:
                self.crashed.setdefault(each.id, f"the check itself crashed: {_said(error, self.update)}")

    # Where the loop is

    @property
    def update(self) -> int:
        """The number of the update that the loop is working towards or just made, counted from 1."""
        return max(1, self.updates_made + (not self._stepped))

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
        current = None if self.batch is None else self.batch.of
        dropped = [each for each in self.passes if each.is_dropped and each is not current]
        for each in [each for each in self.passes if each.loader is loader or each in dropped]:
            self.end_pass(each)
            if each in self.passes:
                self.passes.remove(each)  # it gave no batch
        number = 1 + self._passes_of.get(loader, 0)
        where, thread = self.locator.where(), threading.get_ident()
        begun = Pass(loader, number, planned, where, self.updates_made, thread=thread)
        self.passes.append(begun)
        self.emit(PassBegins(begun))
        return begun

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
        self.loaded = self.loaded or time.perf_counter()
        self._stepped = False
        if self._step_thread == threading.get_ident():
            self.in_step = None  # one that is still there has raised
        indices = indices.tolist() if hasattr(indices, "tolist") else indices  # samplers give arrays too
        of.batches += 1
        of.pending += 1
        self._passes_of[of.loader] = of.number
        of.rows += _count(indices)
        self.batch = Batch(of, self._next_number("batch"), indices, samples, data, self.locator.where())
        self.emit(self.batch)

    def forward(
        self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, *, unhooked: bool
    ) -> None:
        self._stepped, self.difference = False, None
        number = self._next_number("forward")
        where = self.locator.where()
        called = Forward(number, model, args, kwargs, output, self.batch, where=where, unhooked=unhooked)
        differentiable = [each for each in called.outputs if each.requires_grad]
        for tensor in differentiable:
            handle = tensor.register_hook(_Reached(self.reached, number))  # type: ignore[no-untyped-call]
            if tensor.is_leaf:  # it lives on with its hooks: a parameter that the model gives as it is
                self._on_leaves.append(handle)
        for old in self._on_leaves[:-HELD]:
            old.remove()
        del self._on_leaves[:-HELD]
        if differentiable:
            called = replace(called, gradients=True)
        if self.batch is not None:
            self.batch.of.forwards += 1
            self.batch.of.model = self.batch.of.model or self.number_of(model)
        self.forwards = [*self.forwards[1 - HELD :], called]
        self.emit(called)

    def inner_forward(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """A pretrained model that a model of the script's own calls."""
        self.emit(InnerForward(0, model, args, kwargs, output, self.batch, where=self.locator.where()))

    def loss(self, call: LossCall) -> None:
        self.losses = [*self.losses[1 - HELD :], call]
        self.emit(call)

    def score(
        self,
        call: LossCall | None = None,
        parts: tuple[torch.Tensor, torch.Tensor] | None = None,
        agrees: torch.Tensor | None = None,
    ) -> None:
        """Something was computed that may score what a model has just said; of a difference a part has its rows."""
        said = self.forwards[-1].logits if self.forwards else None
        if parts is not None and (said is None or all(part.shape[:1] != said.shape[:1] for part in parts)):
            return
        if self.forwards and not self.forwards[-1].gradients:
            self.emit(Scored(self.forwards[-1], call, parts, agrees))

    def threshold(self, values: torch.Tensor, threshold: float) -> None:
        """Numbers were compared with one: told where they are what the latest forward, without a graph, gave."""
        if not self.forwards or self.forwards[-1].gradients:
            return
        said = self.forwards[-1].logits
        if said is not None and said.numel() == values.numel() > 1 and torch.equal(said.flatten(), values.flatten()):
            self.emit(Thresholded(self.forwards[-1], threshold, self.locator.where()))

    def score_class(self, predicted: torch.Tensor) -> None:
        """Numbers were compared with one class: a score, if there are as many as the model has just said rows."""
        said = self.forwards[-1].logits if self.forwards else None
        if said is not None and said.dim() == 2 and len(said) == len(predicted):
            self.score()

    @contextmanager
    def backward(self, root: torch.Tensor) -> Iterator[None]:
        self.loaded = self.loaded or time.perf_counter()
        self._stepped = False
        begins = BackwardBegins(
            number=self._next_number("backward"),
            root=root,
            scale=self.scale,
            losses=self.losses,
            forwards=self.forwards,
            batch=self.batch,
            where=self.locator.where(),
            inside_step=self.in_step is not None,
        )
        self.scale, self.scaled = 1.0, False
        self.reached.clear()
        self.in_backward = True
        self.emit(begins)
        try:
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
        self._step = StepBegins(optimizer, number, self.update, sampled, seen.where, self.batch)
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
        if self.options.updates is not None and self.updates_made >= self.options.updates:
            self.complete = False
            self.over = True
            raise UpdateLimitReached

    def ends(self) -> None:
        """The loop is over: what can only be said at the end is said now."""
        self.over = False
        for each in list(self.passes):
            self.end_pass(each)
        self.emit(End())
        self.over = True
        self.batch = None

    def let_go(self) -> None:
        """Nothing comes of this loop any more: what it holds until the next backward pass is free."""
        self.forwards, self.losses, self.batch, self.difference = [], [], None, None
        while self._on_leaves:
            self._on_leaves.pop().remove()

    def summaries(self) -> dict[str, Any]:
        """What the checks sum up of this rank, by id."""
        found = {}
        for check in self.checks:
            if check.id not in self.crashed:
                try:
                    found[check.id] = check.summary()
                except Exception as error:  # noqa: BLE001 - one crash policy: it is left out, and named
                    self._leave_out(check, error)
        return found

    def compare_ranks(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """On the first of several ranks, at the end: let the checks compare what they summed up on each.

        ``summaries`` has one mapping for each rank, this one's first, from a check's id to its summary.
        """
        for check in self.checks:
            mine = [each.get(check.id) for each in summaries]
            if None not in mine:
                try:
                    check.compare(mine)
                except Exception as error:  # noqa: BLE001 - one crash policy: it is left out, and named
                    self._leave_out(check, error)

    def hand_over(self, other: Monitor, thread: int) -> None:
        """What a thread made and began is the other's, to which its loop turns out to belong."""
        for optimizer in [each() for each in self.optimizers.keyrefs()]:
            if optimizer is not None and self.optimizers[optimizer].thread == thread:
                self.hand_over_optimizer(optimizer, other)
        for each in [each for each in self.passes if each.thread == thread]:
            self.passes.remove(each)
            other.passes.append(each)
        if self.batch is not None and self.batch.of in other.passes:
            other.batch, self.batch = self.batch, None

    def hand_over_optimizer(self, optimizer: Optimizer, other: Monitor) -> None:
        """An optimizer, and its schedulers, are of the loop that steps it."""
        other.optimizers[optimizer] = self.optimizers.pop(optimizer)
        for scheduler in [each() for each in self.schedulers.keyrefs()]:
            if scheduler is not None and raw_optimizer(getattr(scheduler, "optimizer", None)) is optimizer:
                other.schedulers[scheduler] = self.schedulers.pop(scheduler)


class Threads:
    """The monitors of a script: one for each thread that trains.

    Everything belongs to the first, until a thread calls a model while another one that lives trains there already:
    then it is a loop of its own, with what it has made until then. What a loop's helper threads do (fetching batches)
    is the first's too, and so is what the threads of torch's own engine do.
    """

    def __init__(self, options: Options, locator: Locator) -> None:
        self.options, self.locator = options, locator
        self.first = Monitor(options, locator)
        self.monitors = [self.first]
        self.reported: Callable[[list[Finding]], list[Finding]] = list
        """The findings that are wanted and say something of their own, of all."""
        self.closed = False
        """Whether the watch is over: what was made meanwhile may still call its instruments."""
        self.broken: str | None = None
        """How the watch itself failed, where it did; the script then goes on without it."""
        self.leaving: Callable[[int], int] | None = None
        """Called where the process is left by os._exit, with the exit status; gives the one to leave it with."""
        self._stops = 0
        """How often the script was ended after it had been ended."""
        self._trains: threading.Thread | None = None
        """The thread whose loop is the first."""
        self._own = threading.local()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        """What a notebook shows: the findings as a terminal shows them, and how much was looked at."""
        found = self.reported(self.all_findings)
        lines = [f"{len(found) or 'nothing'} found in {self.updates_made} updates; {len(self.looked)} checks looked"]
        return "\n".join([*lines, *(line for finding in found for line in ("", *finding.lines()))])

    def current(self) -> Monitor | None:
        """The monitor of this thread; None where nobody is to be told what happens."""
        monitor: Monitor = getattr(self._own, "monitor", self.first)
        over = self.closed or self.broken is not None or monitor.over
        return None if over or monitor.suspended.depth or is_transformed() else monitor

    def calling_a_model(self) -> Monitor | None:
        """The monitor of this thread, which shows by its call that it may be a loop of its own."""
        if not self.closed and self.broken is None and not hasattr(self._own, "monitor"):
            with self._lock:
                self._own.monitor = self._assigned(threading.get_ident())
        return self.current()

    def _assigned(self, thread: int) -> Monitor:
        known = {each.ident: each for each in threading.enumerate() if not isinstance(each, threading._DummyThread)}
        if thread not in known:
            return self.first  # of torch's engine, which nobody started as a thread of Python's
        for ended in [each for each in self.monitors[1:] if each.thread not in known]:
            ended.let_go()
        if self._trains is None or not self._trains.is_alive() or self._trains is known[thread]:
            self._trains = known[thread]
            return self.first
        other = Monitor(self.options, self.locator)
        other.thread = thread
        self.monitors.append(other)
        self.first.hand_over(other, thread)
        return other

    def stop_at_limit(self) -> None:
        """End a script that went on after it was ended, as one with a bare ``except:`` does.

        Raises:
            UpdateLimitReached: the updates that were asked for have been made.
        """
        if not self.closed and self.options.updates is not None and any(each.over for each in self.monitors):
            for each in self.monitors:
                each.complete = False
            self._stops += 1
            if self._stops > MOST_STOPS and self.leaving is not None:
                sys.stdout.flush()
                os._exit(self.leaving(0))
            raise UpdateLimitReached

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """What is done meanwhile is ours; where it fails, the script goes on as if nobody watched."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - one crash policy: the script never pays for it, and it is named
            self.fails(error)

    def fails(self, error: Exception) -> None:
        """The watch itself has failed: it is over, and what was not found until now was not looked at.

        Raises:
            Exception: the error, where a signal handler of the script's own raised it, or under HARNESS_DEBUG.
        """
        if os.environ.get("HARNESS_DEBUG") or from_signal_handler(error):
            raise error
        self.broken = self.broken or f"the watch itself crashed: {_said(error, self.updates_made + 1)}"
        for monitor in self.monitors:
            monitor.complete = False

    def stepping(self, optimizer: Optimizer) -> Monitor | None:
        """The monitor of this thread, which steps the optimizer: whoever made it, it belongs to this loop."""
        monitor = self.current()
        if monitor is not None and monitor is not self.first and optimizer in self.first.optimizers:
            self.first.hand_over_optimizer(optimizer, monitor)
        return monitor

    def ends(self) -> None:
        """All loops are over; what a thread that Python does not wait for goes on with is not judged."""
        self.closed = True
        for monitor in self.monitors if self.broken is None else ():
            monitor.ends()

    @property
    def findings(self) -> dict[str, Finding]:
        """By the id of the check; of each the first."""
        return {finding.check: finding for finding in reversed(self.all_findings)}

    @property
    def all_findings(self) -> list[Finding]:
        """Of all loops; of a check in a line the first."""
        found: dict[tuple[str, str | None], Finding] = {}
        for monitor in self.monitors:
            for finding in monitor.findings:
                found.setdefault((finding.check, finding.where), finding)
        return list(found.values())

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for monitor in self.monitors for note in monitor.notes))

    @property
    def crashed(self) -> dict[str, str]:
        """Checks that could not look, and why: they failed themselves, or the watch did."""
        found = {check: how for monitor in self.monitors for check, how in sorted(monitor.crashed.items())}
        if self.broken is None:
            return found
        unseen = {check.id for check in self.first.checks} - set(self.findings)
        return dict.fromkeys(sorted(unseen), self.broken) | found

    @property
    def looked(self) -> set[str]:
        """Checks that judged something."""
        return {check.id for monitor in self.monitors for check in monitor.checks if check.looked}

    @property
    def lacking(self) -> dict[str, str]:
        """Checks that had nothing to look at, and why."""
        looked, checks = self.looked, [check for monitor in self.monitors for check in monitor.checks]
        return {check.id: check.lacks() for check in checks if check.id not in looked}

    @property
    def trained(self) -> bool:
        """Whether any optimizer made a step, or the script its own updates."""
        return any(monitor.stepped or monitor.updated_by_hand for monitor in self.monitors)

    @property
    def updates_made(self) -> int:
        return sum(monitor.updates_made for monitor in self.monitors)


def _said(error: Exception, update: int) -> str:
    """What an error says, in one line, and where it was raised."""
    last, (first, *_) = traceback.extract_tb(error.__traceback__)[-1], [*str(error).splitlines(), ""]
    return (
        f"{type(error).__name__}: {shortened(first)} ({os.path.basename(last.filename)}:{last.lineno}, update {update})"
    )


class _Reached:
    """A tensor's hook, which holds no tensor."""

    def __init__(self, reached: set[int], number: int) -> None:
        self._reached, self._number = reached, number

    def __call__(self, gradient: torch.Tensor) -> None:
        self._reached.add(self._number)


def _count(indices: Any) -> int:
    if indices is None:
        return 0
    return len(indices) if isinstance(indices, (list, tuple)) else 1
