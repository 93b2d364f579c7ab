"""The observer: knows where a training loop is, and tells the invariants what happens."""

from __future__ import annotations

import gc
import os
import random
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from harness.findings import Finding, Severity
from harness.watch.events_old import Backward, Batch, Forward, Loss, Pass, Step

HELD = 8
"""So many forwards and loss calls are held until the next backward pass."""

EVENTS = (
    *("pass_begins", "batch", "pass_ends", "forward", "inner_forward", "loss"),
    *("backward_begins", "backward", "clip", "zero_grad", "unscaled", "skipped"),
    *("step_begins", "step", "scheduled", "scored", "evaluated"),
    *("loads", "loaded", "snapshot", "saved", "from_checkpoint", "constructed"),
    *("tokenizer", "encoded", "dataset", "trainer", "ends"),
)


class Enough(BaseException):
    """Ends a script after the updates that were asked for."""


@dataclass(frozen=True)
class Statement:
    """What one check says of every right training loop."""

    id: str
    says: str
    severity: Severity = "error"


class Invariant:
    """A family of checks over the events of a loop.

    A subclass has a method for each event that it needs, named as in :data:`EVENTS`, and calls :meth:`found`.
    """

    checks: tuple[Statement, ...] = ()

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def found(
        self,
        check: str,
        *,
        expected: str,
        observed: str,
        hint: str,
        where: str | None = None,
        update: int | None = None,
    ) -> None:
        """Record a finding; of each check the first one is kept."""
        statement = next(each for each in self.checks if each.id == check)
        self.observer.record(statement, Finding(expected, observed, hint, where, update))


@dataclass
class OptimizerSeen:
    steps: int = 0
    made: str | None = None
    """Where it was made."""
    stack: tuple[tuple[str, int], ...] | None = None
    """All of the user's lines that led to its making."""
    where: str | None = None
    """Of its latest step."""


class Observer:
    """Told by the hooks what happens; keeps where the loop is, and passes events on to the invariants.

    ``every`` says at which updates tensors are looked at: the first ones, and then one in so many. A check that crashes
    is left out from then on and becomes one warning; the loop goes on.
    """

    def __init__(
        self,
        invariants: Sequence[type[Invariant]],
        *,
        every: int = 50,
        updates: int | None = None,
        script: Path | None = None,
        shortened: bool = False,
    ) -> None:
        self.every, self.updates, self.shortened = every, updates, shortened
        self.script = None if script is None else os.path.realpath(script)
        self.findings: dict[str, Finding] = {}
        self.notes: list[str] = []
        """What could not be looked at, and why."""
        self.quiet = 0
        self.updates_made = 0
        self._stepped = False
        """Whether the update at hand has been made, by one optimizer at least."""
        self.passes: list[Pass] = []
        """One for each loader: its latest."""
        self.passes_shortened = False
        self.batch: Batch | None = None
        self.fetching: list[Any] = []
        """The queues of batches that are being taken ahead of their use."""
        self.optimizers: WeakKeyDictionary[Optimizer, OptimizerSeen] = WeakKeyDictionary()
        self.optimizers_made: list[str | None] = []
        """Where each optimizer was made, those that are gone included."""
        self.schedulers: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()
        """Every scheduler seen, with where it was made."""
        self.scale = 1.0
        self.forwards: list[Forward] = []
        self.losses: list[Loss] = []
        self.reached: set[int] = set()
        self.in_backward = False
        self.in_step: Optimizer | None = None
        self.first_batch: float | None = None
        """When the script got its first batch."""
        self.made = False
        """Whether any optimizer stepped."""
        self.complete = True
        """Whether the loop went to its own end; what was to come cannot be missed where it did not."""
        self.models: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
        """A number for each module that was called."""
        self._numbers = dict.fromkeys(("batch", "forward", "backward", "model"), 0)
        self._searched = False
        self._shown: dict[str, str] = {}
        self.invariants = [invariant(self) for invariant in invariants]
        self._listeners: dict[str, list[tuple[Invariant, Callable[[Any], None]]]] = {
            event: [(each, getattr(each, event)) for each in self.invariants if hasattr(each, event)]
            for event in EVENTS
        }

    @property
    def update(self) -> int:
        """The number of the update that the loop is working towards or just made, counted from 1."""
        return max(1, self.updates_made + (not self._stepped))

    # What invariants say

    def record(self, statement: Statement, finding: Finding) -> None:
        if statement.id not in self.findings:
            self.findings[statement.id] = Finding(
                finding.expected,
                finding.observed,
                finding.hint,
                finding.where or self.script_name,
                finding.update,
                statement.id,
                statement.severity,
                statement.says,
            )

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def emit(self, event: str, about: Any = None) -> None:
        listeners = self._listeners[event]
        if not listeners:
            return
        self.quiet += 1
        try:
            for listener in list(listeners):
                invariant, handle = listener
                try:
                    handle(about)
                except Exception as error:
                    self._leave_out(invariant, event, error)
        finally:
            self.quiet -= 1

    def _leave_out(self, invariant: Invariant, event: str, error: Exception) -> None:
        for listeners in self._listeners.values():
            listeners[:] = [each for each in listeners if each[0] is not invariant]
        names = type(invariant).__name__.lower()
        self.note(
            f"the checks of {names} failed themselves and were left out from update {self.update} on: "
            f"{type(error).__name__} at {event}: {error}"
        )
        if os.environ.get("HARNESS_DEBUG"):
            raise error

    # Where the user's code is

    @property
    def script_name(self) -> str | None:
        return None if self.script is None else _shown(self.script) + ":1"

    def where(self) -> str | None:
        """FILE:LINE of the innermost line that is the user's own."""
        for name, line in self._users_lines():
            return f"{self._shown[name]}:{line}"
        return None

    def stack(self) -> tuple[tuple[str, int], ...]:
        """All of the user's own lines that are being executed, the innermost first."""
        return tuple(self._users_lines())

    def _users_lines(self) -> Iterator[tuple[str, int]]:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            name = frame.f_code.co_filename
            if name not in self._shown:
                self._shown[name] = _shown(name) if self._is_users(name) else ""
            if self._shown[name]:
                yield name, frame.f_lineno
            frame = frame.f_back

    def _is_users(self, name: str) -> bool:
        if "ipykernel" in name or name.startswith("<ipython"):
            return True
        if name.startswith("<"):
            return False
        path = os.path.realpath(name)
        return path == self.script or not path.startswith(NOT_THE_USERS)

    # What the hooks report

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """What happens meanwhile is not the user's doing."""
        self.quiet += 1
        try:
            yield
        finally:
            self.quiet -= 1

    def next_number(self, of: str) -> int:
        self._numbers[of] += 1
        return self._numbers[of]

    def number_of(self, model: nn.Module) -> int:
        if model not in self.models:
            self.models[model] = self.next_number("model")
        return self.models[model]

    def begin_pass(self, loader: Any, planned: int | None) -> Pass:
        earlier = [each for each in self.passes if each.loader is loader]
        for each in earlier:
            self.end_pass(each)
        begun = Pass(
            loader, 1 + max((each.number for each in earlier), default=0), planned, self.where(), self.updates_made
        )
        self.passes = [each for each in self.passes if each not in earlier] + [begun]
        self.emit("pass_begins", begun)
        return begun

    def end_pass(self, ended: Pass) -> None:
        if ended.over or ended.batches == 0:
            return
        ended.over = True
        self.passes_shortened = self.passes_shortened or ended.shortened
        self.emit("pass_ends", ended)
        if self.batch is not None and self.batch.of is ended and not ended.trains and ended.forwards >= ended.batches:
            self.batch = None  # what comes now is of no pass

    def give(self, of: Pass, indices: Any, samples: Any, data: Any) -> None:
        self.first_batch = self.first_batch or time.perf_counter()
        self._stepped = False
        of.batches += 1
        of.pending += 1
        of.rows += _count(indices)
        self.batch = Batch(of, self.next_number("batch"), indices, samples, data, self.where())
        self.emit("batch", self.batch)

    def forward(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        self._stepped = False
        number = self.next_number("forward")
        called = Forward(number, model, args, kwargs, output, self.batch, False, self.where())
        for tensor in (called.logits, called.loss):
            if tensor is not None and tensor.requires_grad:
                called.gradients = True
                tensor.register_hook(_Reached(self.reached, number))  # type: ignore[no-untyped-call]
        if self.batch is not None:
            self.batch.of.forwards += 1
            self.batch.of.model = self.batch.of.model or self.number_of(model)
        self.forwards = [*self.forwards[1 - HELD :], called]
        self.emit("forward", called)

    def inner_forward(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """A pretrained model that a model of the script's own calls."""
        self.emit("inner_forward", Forward(0, model, args, kwargs, output, self.batch, False, self.where()))

    def loss(self, call: Loss) -> None:
        self.losses = [*self.losses[1 - HELD :], call]
        self.emit("loss", call)

    @contextmanager
    def backward(self, root: torch.Tensor) -> Iterator[None]:
        self._stepped = False
        made = Backward(
            self.next_number("backward"),
            root,
            self.scale,
            losses=self.losses,
            forwards=self.forwards,
            batch=self.batch,
            where=self.where(),
            inside_step=self.in_step is not None,
        )
        self.scale = 1.0
        self.reached.clear()
        self.in_backward = True
        self.emit("backward_begins", made)
        try:
            yield
        finally:
            self.in_backward = False
        made.reached = frozenset(self.reached)
        if self.batch is not None:
            self.batch.of.trains = True
        self.emit("backward", made)
        self.forwards, self.losses = [], []

    def optimizer_made(self, optimizer: Optimizer) -> None:
        if hasattr(optimizer, "param_groups"):
            stack = self.stack()
            made = f"{self._shown[stack[0][0]]}:{stack[0][1]}" if stack else None
            self.optimizers_made.append(made)
            self.optimizers[optimizer] = OptimizerSeen(made=made, stack=stack)

    def is_sampled(self) -> bool:
        """Whether tensors are looked at: in the first updates of all and of each pass, and in one of many."""
        new = self.batch is not None and self.batch.of.updates < 2
        return self.update <= 8 or self.update % self.every == 0 or new

    def step_begins(self, optimizer: Optimizer) -> None:
        if self.in_step is not None:
            return  # an optimizer's step within its own
        self.in_step = optimizer
        seen = self.optimizers.setdefault(optimizer, OptimizerSeen())
        seen.where = self.where()
        self._step = Step(optimizer, seen.steps + 1, self.update, self.is_sampled(), seen.where, self.batch)
        self.emit("step_begins", self._step)

    def step_ends(self, optimizer: Optimizer) -> None:
        if self.in_step is not optimizer:
            return
        self.in_step = None
        self.made = True
        seen = self.optimizers[optimizer]
        seen.steps += 1
        self.emit("step", self._step)
        if self.batch is not None:
            self.batch.of.updates += not self._stepped
            self.batch.of.pending = 0
        # Optimizers that step one after the other make one update together.
        self.updates_made += not self._stepped
        self._stepped = True
        self.forwards, self.losses = [], []
        if self.updates is not None and self.updates_made >= self.updates:
            self.complete = False
            raise Enough

    def ends(self) -> None:
        """The loop is over: what can only be said at the end is said now."""
        self.quiet = 0
        for each in self.passes:
            self.end_pass(each)
        self.emit("ends")
        self.quiet = 1  # what is still held of the patches says no more
        self.batch = None

    def schedulers_there(self) -> list[Any]:
        """The schedulers that are alive, those made before the observer looked included."""
        if not self._searched:
            self._searched = True
            kinds = (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau)
            for each in gc.get_objects():
                if issubclass(type(each), kinds):
                    self.schedulers.setdefault(each, None)
        return list(self.schedulers)


class _Reached:
    """A tensor's hook, which holds no tensor."""

    def __init__(self, reached: set[int], number: int) -> None:
        self._reached, self._number = reached, number

    def __call__(self, gradient: torch.Tensor) -> None:
        self._reached.add(self._number)


@contextmanager
def unchanged_random_state(*generators: torch.Generator) -> Iterator[None]:
    """Whatever is drawn inside, Python, NumPy, torch and ``generators`` go on afterwards as if it had not been."""
    python, numpy, states = random.getstate(), np.random.get_state(), [each.get_state() for each in generators]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


def _not_the_users() -> tuple[str, ...]:
    paths = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    for name in ("torch", "transformers", "accelerate", "datasets", "evaluate", "tqdm", "click"):
        module = sys.modules.get(name)
        if module is not None and module.__file__:
            paths.add(os.path.dirname(module.__file__))
    paths.add(str(Path(__file__).parents[1]))
    return tuple(os.path.realpath(path) + os.sep for path in paths)


NOT_THE_USERS = _not_the_users()


def _shown(name: str) -> str:
    """Relative to the working directory where it lies below it."""
    relative = os.path.relpath(name)
    return name if relative.startswith("..") else relative


def _count(indices: Any) -> int:
    if indices is None:
        return 0
    return len(indices) if isinstance(indices, (list, tuple)) else 1
