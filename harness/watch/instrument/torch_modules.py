"""Calls of modules."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

import torch
from torch import nn

from harness.torch_objects import is_traced
from harness.watch.events import Forward, InnerForward, LossCall, PassEnds, Scored, ScoredInGraph
from harness.watch.instrument.patches import Instrument, Original, Patches, calling_frame
from harness.watch.session import Session

FRAMES = 8
"""How many calls of helpers a module's forward may be above the call of a part of it."""


A_FORWARD = re.compile(r"(?<!super\(\))\.forward\(")
"""A call of a method of that name that is not the base class's."""

REDIRECTED = "wrapped_forward"
"""What Lightning puts in the place of a module's forward for the length of a step."""


class _Calls:
    """What is told of the calls of modules."""

    def __init__(self, session: Session, patches: Patches) -> None:
        self.session, self.patches = session, patches
        self.by_forward: dict[type[nn.Module], int] = {}
        """Classes whose forward is called by itself, with the updates made when that was seen."""
        self.called: set[type[nn.Module]] = set()
        """Classes of models that were called."""

    def told(self, call: Original, given: tuple[Any, ...], kwargs: Mapping[str, Any], *, unhooked: bool = False) -> Any:
        """Call a module that is no part of another, or a pretrained model within a module of the script's own."""
        session, calling, (module, *args) = self.session, self.session.calling, given
        if not calling.depth:
            calling.within_own, calling.losses, calling.parts = not _has_config(module), [], {id(module): module}
        calling.depth += 1
        try:
            output = call(module, *args, **kwargs)
        finally:
            calling.depth -= 1
        losses: list[LossCall] = []
        parts: dict[int, nn.Module] = {}
        if not calling.depth:  # what was called is not kept any longer than its event
            losses, calling.losses = calling.losses, losses
            parts, calling.parts = calling.parts, parts
        is_model = (
            calling.depth or next(nn.Module.named_parameters(module), None) is not None
        )  # a class may have its own
        monitor = session.calling_a_model() if is_model else session.current() if losses else None
        if monitor is not None and not monitor.in_backward:
            if calling.depth:
                monitor.inner_forward(module, tuple(args), dict(kwargs), output)
            elif is_model:  # and no loss, transform of data, or replica of DataParallel
                monitor.forward(module, tuple(args), dict(kwargs), output, losses, parts.values(), unhooked=unhooked)
            for each in losses:
                monitor.score(each)
        return output

    def is_told(self, module: nn.Module) -> bool:
        """Whether a call of a module is told of."""
        calling = self.session.calling
        if calling.depth:
            calling.parts[id(module)] = module
            return calling.within_own and hasattr(type(module), "base_model_prefix") and not is_traced()
        if is_traced() or _is_redirected(module) or self.is_part(module, caller := calling_frame()):
            return False
        if type(module) not in self.called:
            self.expect_forward_of(type(module), caller)
        return True

    def is_part(self, module: nn.Module, frame: FrameType) -> bool:
        """Whether a module is called in the forward of another that a script called by itself, ``model.forward(...)``.

        That is no call of the other, which is seen by its parts only where nothing had announced it (`expect_forward`):
        from its next one on it is told of. A method that was taken from a model before goes on as it was, and then, in
        later updates, its parts are told of.
        """
        whole = _whose_forward_calls(module, frame)
        if whole is None or "forward" in vars(whole) or isinstance(whole, torch.jit.ScriptModule):
            return False
        if type(whole) not in self.by_forward:
            self.watch_forward_of(type(whole))
            if (monitor := self.session.current()) and monitor.batch is not None:
                monitor.batch.of.forwards += 1  # of which only the parts are seen
        return self.by_forward.setdefault(type(whole), self.session.updates_made) == self.session.updates_made

    def expect_forward(self, module: nn.Module) -> bool:
        """Watch for it before the first call, where a script asks for the parameters of its model and has a call of
        some forward. It is nothing to tell of."""
        caller = calling_frame()
        if not self.session.calling.depth and type(module) not in self.called and self.session.locator.is_users(caller):
            self.expect_forward_of(type(module), caller)
        return False

    def expect_forward_of(self, model: type[nn.Module], frame: FrameType | None) -> None:
        """Watch for it from the first call on, where the file that calls a model has a call of some forward, too."""
        self.called.add(model)
        if issubclass(model, torch.jit.ScriptModule):
            return  # its forward is not Python's
        for _ in range(FRAMES):
            if frame is None or model in self.by_forward:
                return
            users = self.session.locator.is_users(frame)
            if users and A_FORWARD.search("".join(linecache.getlines(frame.f_code.co_filename))):
                self.by_forward[model] = -1
                self.watch_forward_of(model)
            frame = frame.f_back

    def watch_forward_of(self, model: type[nn.Module]) -> None:
        def told(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            return self.told(original, args, kwargs, unhooked=True)

        calling = self.session.calling
        self.patches.wrap_calls(model, "forward", told, where=lambda module: not calling.depth and not is_traced())


def install(session: Session, patches: Patches) -> None:
    """Replace ``nn.Module.__call__``, which costs less than torch's global hooks do: they take each call of each module
    on its slow path, and only few calls are told of."""
    calls = _Calls(session, patches)
    patches.wrap_calls(nn.Module, "__call__", calls.told, where=calls.is_told)
    for name in ("parameters", "named_parameters"):
        patches.wrap_calls(nn.Module, name, calls.told, where=calls.expect_forward)


INSTRUMENTS = (Instrument((Forward, InnerForward, PassEnds, Scored, ScoredInGraph), install),)


def _has_config(module: nn.Module) -> bool:
    """Whether it is a pretrained model, or stands for one."""
    if "config" in vars(module) or hasattr(type(module), "config"):
        return True  # what computes it is not called
    with suppress(Exception):  # of a class that finds attributes itself
        return hasattr(module, "config")
    return False


def _is_redirected(module: nn.Module) -> bool:
    """Whether Lightning calls a step of its module by way of DistributedDataParallel's forward, and the module's own.

    What the step calls is the model, as it is in one process.
    """
    parts = vars(module).get("_modules")  # a scripted module has no dictionary there
    inner = parts.get("module") if isinstance(parts, dict) else None
    forward = vars(module if inner is None else inner).get("forward")
    return getattr(forward, "__name__", "") == REDIRECTED


def _whose_forward_calls(module: nn.Module, frame: FrameType | None) -> nn.Module | None:
    """The outermost module of which a part is called in its forward, where that was not reached by a call of it."""
    whole = None
    while frame is not None:
        code = frame.f_code
        if code.co_name == REDIRECTED:
            break
        if code.co_name == "forward" and code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            if (
                isinstance(first, nn.Module)
                and first is not module
                and any(part is module for part in nn.Module.modules(first))
            ):
                whole = module = first
        frame = frame.f_back
    return whole
