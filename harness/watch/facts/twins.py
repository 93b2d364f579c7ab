"""Twins: a copy of a model, which is asked what the model was not asked, and nothing of the training changes."""

from __future__ import annotations

import copy
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from harness.findings import first_line
from harness.torch_objects import unchanged_random_state
from harness.watch.events import LOSSES, Forward, logits_in
from harness.watch.locate import LIBRARIES, from_signal_handler
from harness.watch.run.batches import CONSTANTS

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

OF_THE_LOSS = ("labels", "shift_labels", "num_items_in_batch")
"""What a model is given for its loss: without it, it gives logits also where it computes its loss in chunks."""

DIFFERENT = 1e-4
"""Smallest difference of logits, as a share of the largest, that is no rounding. Another order of sums, as another
mask's kernel or a convolution by Fourier transforms has, makes a hundredth of it in float32."""

LARGEST = 2**31
"""Bytes up to which a model is copied: what fits beside it."""


class Refused(Exception):
    """Raised where a model cannot be copied or its copy cannot be called; the message says why."""


class SpreadOverProcesses(Refused):
    """Raised for a model in several processes: in each run of several, so that nothing needs to be said of it."""


class probing:  # noqa: N801 - read as what is done within it
    """Within it twins are asked: random states are set aside, and nothing is recorded in a graph unless ``gradients``.

    Where one refuses, it ends there, and a note says what is ``unknown`` and why, unless it is spread over processes.
    """

    def __init__(self, monitor: Monitor, unknown: str, *, gradients: bool = False) -> None:
        self._monitor, self._unknown, self._gradients = monitor, unknown, gradients
        self._set_aside = ExitStack()

    def __enter__(self) -> None:
        self._set_aside.enter_context(unchanged_random_state())
        self._set_aside.enter_context(torch.set_grad_enabled(self._gradients))

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        self._set_aside.close()
        if isinstance(error, Refused) and not isinstance(error, SpreadOverProcesses):
            self._monitor.note(f"{self._unknown} is not known ({error})")
        return isinstance(error, Refused)


class Twin:
    """A copy of a model, in eval mode unless ``as_it_trains``.

    Raises:
        Refused: there is no room for a copy, its class has none, or calling it concerns somebody else.
    """

    def __init__(self, model: nn.Module, *, as_it_trains: bool = False) -> None:
        if type(model).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel"):
            raise SpreadOverProcesses("a copy would compute alone what the model computes together")
        if (why := _obstacle(model)) is not None:
            raise Refused(why)
        try:
            self.model: nn.Module = copy.deepcopy(model)
        except Exception as error:
            if from_signal_handler(error):
                raise
            raise Refused("it cannot be copied") from error
        if not as_it_trains:
            self.model.eval()

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What it gives.

        Raises:
            Refused: it raised an error.
        """
        try:
            return self.model(*args, **kwargs)
        except Exception as error:
            if from_signal_handler(error):
                raise
            raise Refused(first_line(error)) from error

    def computes_in_half_precision(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether anything in its call is: of its weights, or because autocast is on, there or within it.

        Raises as :meth:`call` does.
        """
        with _Precision() as seen:
            self.call(args, kwargs)
        return bool(seen.half)

    def logits(self, args: Any, kwargs: Any) -> torch.Tensor | None:
        """The logits of what it gives, or those that its own loss is of; None where there are none.

        Raises as :meth:`call` does.
        """
        found = logits_in(self.call(args, kwargs))
        if found is not None:
            return found
        with _LossInputs() as inputs:
            self.call(args, kwargs)
        given = inputs.of_losses or inputs.of_logarithms
        return given[0] if len(given) == 1 else None


class _Precision(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within it, whether any operation gives numbers in half precision."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.half: bool = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        given = (each for each in tree_leaves(found) if torch.is_tensor(each) and each.is_floating_point())
        self.half = self.half or any(each.element_size() < 4 for each in given)
        return found


class _LossInputs(TorchFunctionMode):
    """Within it, what loss functions are given as logits, or what log_softmax is, (…, classes)."""

    def __init__(self) -> None:
        super().__init__()
        self.of_losses: list[torch.Tensor] = []
        self.of_logarithms: list[torch.Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", None)
        if name in LOSSES:
            given = args[0] if args else kwargs["input"]
            self.of_losses.append(given.movedim(1, -1) if given.dim() > 2 else given)
        elif name == "log_softmax":
            given = args[0] if args else kwargs["input"]
            dim = args[1] if len(args) > 1 else kwargs.get("dim")
            self.of_logarithms.append(given.movedim(-1 if dim is None else dim, -1))
        return function(*args, **kwargs)


class LanguageTwin(Twin):
    """A copy of the language model of a forward, in float32, which is asked about what the model was given, changed."""

    def __init__(self, forward: Forward) -> None:
        super().__init__(forward.model)
        self.model.float()
        self._forward = forward

    def logits_with(self, **changed: torch.Tensor | None) -> torch.Tensor:
        """(rows, tokens, classes): its logits, by the same random numbers each time.

        Raises:
            Refused: it gives none, or raised an error.
        """
        kept = {name: value for name, value in self._forward.kwargs.items() if name not in OF_THE_LOSS}
        args, kwargs = (mapped(given, _in_float32) for given in (self._forward.args, kept))
        with unchanged_random_state():
            found = self.logits(args, {**kwargs, **changed})
        if found is None or found.dim() != 3:
            raise Refused("it gives no logits for each token")
        return found


def _obstacle(model: nn.Module) -> str | None:
    """Why a model is not copied and called beside the training."""
    if sum(p.numel() * p.element_size() for p in model.parameters()) > LARGEST:
        return f"it has more than {LARGEST / 2**30:.0f} GiB"
    if any(_is_of_the_script(hook) for hook in _hooks(model)):
        return "the script has put a hook on it"
    return None


def _hooks(model: nn.Module) -> Iterator[Any]:
    for module in model.modules():
        yield from module._forward_hooks.values()
        yield from module._forward_pre_hooks.values()


def _is_of_the_script(hook: Any) -> bool:
    """Whether a hook may write what its module was called with where the script reads it."""
    return (getattr(hook, "__module__", None) or "").partition(".")[0] not in LIBRARIES


def detached(value: Any) -> Any:
    """Copies of what a model is given, without the graph that it came from: a forward may write to them."""
    return mapped(value, lambda tensor: tensor.detach().clone())


def with_another(forward: Forward, tensor: torch.Tensor, other: torch.Tensor) -> tuple[Any, Any]:
    """Copies of what a model was given, by position and by name, with another tensor in the place of one."""

    def new(each: torch.Tensor) -> torch.Tensor:
        return (other if each is tensor else each).detach().clone()

    return mapped(forward.args, new), mapped(forward.kwargs, new)


def mapped(value: Any, new: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """What a model is given, with other tensors.

    Raises:
        Refused: it is given an object that is no data, such as a cache: a second call would change the script's own.
    """
    if torch.is_tensor(value):
        return new(value)
    if isinstance(value, (dict, UserDict)):
        return {name: mapped(each, new) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mapped(each, new) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(mapped(each, new) for each in value)
    if isinstance(value, CONSTANTS):
        return value
    raise Refused(f"it is given an object that its call may change: {type(value).__name__}")


def _in_float32(tensor: torch.Tensor) -> torch.Tensor:
    copied = tensor.detach().clone()
    return copied.float() if copied.is_floating_point() else copied


def differ(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """(rows, tokens): where logits of (rows, tokens, classes) are others, beyond rounding."""
    one, other = one.float(), other.float()
    return (one - other).abs().amax(-1) > DIFFERENT * one.abs().max()
