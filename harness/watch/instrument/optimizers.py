"""Optimizers: their making, their steps, what clears and clips their gradients, and GradScaler."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import GeneratorType
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from harness.watch.events import (
    AutocastLeft,
    BackwardBegins,
    Clip,
    OptimizerMade,
    SkippedStep,
    Step,
    StepBegins,
    Unscale,
    ZeroGrad,
)
from harness.watch.guards import Guard
from harness.watch.instrument.patches import Call, Instrument, Original, Patches
from harness.watch.monitor import Monitor
from harness.watch.session import Session

StepHook = Callable[[Optimizer, Any, Any], Any]
"""One of torch's hooks on the steps of all optimizers, given the optimizer and what its step was called with."""


def hooks(session: Session) -> list[RemovableHandle]:
    """torch's own hooks on the steps of all optimizers."""
    begins, ends = step_hooks(session)
    return [register_optimizer_step_pre_hook(begins), register_optimizer_step_post_hook(ends)]


def step_hooks(session: Session) -> tuple[StepHook, StepHook]:
    """What is called before and after the steps of all optimizers.

    torch calls them before the hooks that the script has registered with an optimizer and after those: what these do
    to gradients and parameters is the script's, so that the step begins and ends between them.
    """

    guard = session.guard(StepBegins, Step)
    closures = _Closures(session, guard)

    @guard.guarded
    def begins(optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        if monitor := session.stepping(optimizer):
            return closures.step_begins(monitor, optimizer, args, kwargs)
        return None

    @guard.guarded
    def ends(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if monitor := session.current():
            monitor.step_ends(optimizer)

    @guard.guarded
    def step_begins(optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        session.stop_at_limit()
        _hook_in(optimizer._optimizer_step_post_hooks, ends, last=False)
        if _hook_in(optimizer._optimizer_step_pre_hooks, begins, last=True):
            return None
        return begins(optimizer, args, kwargs)

    @guard.guarded
    def step_ends(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        ends(optimizer, args, kwargs)
        for each in (optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks):
            _take_out(each)

    return step_begins, step_ends


OURS = "harness"
"""The key of a hook of ours among those that a script has registered with an optimizer."""


def _hook_in(hooks: Any, ours: Callable[..., Any], *, last: bool) -> bool:
    """Have our hook called last, or first, of a script's own; whether it has any."""
    _take_out(hooks)  # it is there still where a step has raised
    if hooks:
        hooks[OURS] = ours
        hooks.move_to_end(OURS, last=last)
    return bool(hooks)


def _take_out(hooks: Any) -> None:
    hooks.pop(OURS, None)


class _Closures:
    """Closures that are given to ``step``: what such a step uses is there when it has called its closure once.

    So the step begins then: what comes before is a forward and a backward pass like any other. Lightning trains like
    that. torch's optimizers call it before they write anything, and so do others whose first step has shown it; where
    one does not (sharpness-aware minimization), the step begins before, as without a closure.
    """

    def __init__(self, session: Session, guard: Guard) -> None:
        self._session, self._guard = session, guard
        self._calls_first: WeakKeyDictionary[Optimizer, bool] = WeakKeyDictionary()
        self._waiting: dict[int, Optimizer] = {}
        """Thread id to the optimizer whose step has not called its closure yet."""

    def step_begins(self, monitor: Monitor, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        """Begin the step, or give its arguments with a closure that does it when it was called."""
        thread, closure = threading.get_ident(), args[1] if len(args) > 1 else kwargs.get("closure")
        if isinstance(closure, partial) and closure.func == self._called:
            return None  # handed on to a step within the step
        waiting = self._waiting.pop(thread, None)
        calls_first = self._calls_first.get(optimizer)
        if not callable(closure) or calls_first is False or monitor.in_step is not None:
            monitor.step_begins(waiting or optimizer)
            return None
        if calls_first or type(optimizer).step.__module__.startswith("torch.optim."):
            self._waiting[thread] = optimizer
        else:
            self._calls_first[optimizer] = False
            monitor.step_begins(optimizer)
        closure = partial(self._called, optimizer, closure, _written(optimizer))
        return ((args[0], closure, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": closure})

    def _called(
        self, optimizer: Optimizer, closure: Callable[..., Any], written: int, *args: Any, **kwargs: Any
    ) -> Any:
        """Call the closure, and begin the step that it was given to if it waits for that."""
        waits = self._waiting.pop(threading.get_ident(), None) is not None
        with self._guard:
            if optimizer in self._calls_first and _written(optimizer) == written:
                self._calls_first[optimizer] = True
        result = closure(*args, **kwargs)
        with self._guard:
            monitor = self._session.current() if waits and not self._guard.off else None
            if monitor is not None:
                monitor.step_begins(optimizer)
        return result


def _written(optimizer: Optimizer) -> int:
    """A number that grows when one of its parameters is written in place."""
    return sum(p._version for group in optimizer.param_groups for p in group["params"])


def install(session: Session, patches: Patches) -> None:
    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := session.current():
            monitor.optimizer_made(args[0])

    patches.wrap(Optimizer, "__init__", made)


def install_clearing(session: Session, patches: Patches) -> None:
    def cleared(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if monitor := session.current():
            monitor.emit(ZeroGrad(args[0], monitor.locator.where()))
        return original(*args, **kwargs)

    patches.wrap(Optimizer, "zero_grad", cleared)
    patches.wrap(nn.Module, "zero_grad", cleared)


def install_clipping(session: Session, patches: Patches) -> None:
    def clipped(original: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        given_limit = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
        limit = None if given_limit is None else float(given_limit)
        if limit == math.inf:
            return original(*args, **kwargs)  # it only measures
        parameters = args[0] if args else kwargs["parameters"]
        used_up = _is_used_up(parameters)
        if torch.is_tensor(parameters):
            given = [parameters]
        elif isinstance(parameters, (list, tuple)):
            given = list(parameters)
        else:
            given = original.reads(parameters)
            # torch warns of an empty generator, and only of that
            parameters = (p for p in given) if isinstance(parameters, GeneratorType) else given
        by_value = original.__name__ == "clip_grad_value_"
        monitor.emit(Clip(given, monitor.locator.where(), used_up, limit, by_value))
        others = {name: value for name, value in kwargs.items() if name != "parameters"}
        with monitor.suspended:
            return original(parameters, *args[1:], **others)

    clip_grad = torch.nn.utils.clip_grad
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        patches.wrap(clip_grad, name, clipped)
        patches.same(torch.nn.utils, name, clip_grad)


def _is_used_up(parameters: Any) -> bool:
    return isinstance(parameters, GeneratorType) and inspect.getgeneratorstate(parameters) == inspect.GEN_CLOSED


def install_autocast(session: Session, patches: Patches) -> None:
    def left(value: None) -> None:
        if monitor := session.current():
            monitor.emit(AutocastLeft())

    patches.after(torch, "clear_autocast_cache", left)


def install_scalers(session: Session, patches: Patches) -> None:
    def scaled(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        found = original(*args, **kwargs)
        monitor = session.current()
        if monitor is not None and args[0].is_enabled():
            monitor.scales(args[0].get_scale())
            # an iterator is the script's to go through
            for loss in found if isinstance(found, list | tuple) else [found]:
                if torch.is_tensor(loss) and loss.requires_grad:
                    loss.register_hook(patches.guard.guarded(_Scaled(monitor)))  # type: ignore[no-untyped-call]
        return found

    def unscaled(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is not None and args[0].is_enabled():
            monitor.emit(Unscale(_optimizer(args, kwargs)))
        return original(*args, **kwargs)

    def stepped(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor, optimizer = session.current(), _optimizer(args, kwargs)
        if monitor is None:
            return original(*args, **kwargs)

        def steps() -> int:
            seen = monitor.optimizers.get(optimizer)
            return seen.steps if seen else 0

        before = steps()
        found = original(*args, **kwargs)
        if steps() == before:
            monitor.emit(SkippedStep(optimizer))
        return found

    scaler = torch.amp.grad_scaler.GradScaler
    patches.wrap(scaler, "scale", scaled)
    patches.wrap(scaler, "unscale_", unscaled)
    patches.wrap(scaler, "step", stepped)


INSTRUMENTS = (
    Instrument((OptimizerMade,), install),
    Instrument((ZeroGrad,), install_clearing),
    Instrument((Clip,), install_clipping),
    Instrument((AutocastLeft,), install_autocast),
    Instrument((BackwardBegins, SkippedStep, Unscale), install_scalers),
)


def _optimizer(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return args[1] if len(args) > 1 else kwargs["optimizer"]


class _Scaled:
    """The hook of a loss that a GradScaler has multiplied, which tells that it is differentiated."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = ref(monitor)

    def __call__(self, gradient: torch.Tensor) -> None:
        monitor = self._monitor()
        if monitor is not None:
            monitor.goes_through_scaled()
