"""Backward passes, and the updates that a script makes itself in a loop that has no optimizer of torch.

What is written to parameters between a backward pass and what comes next is one update. It begins with the first write,
while gradients and parameters are still those that it uses, and it is over when a model is called, a batch is taken or
a loss is differentiated. Tensors are watched from the first backward pass on, and only while no optimizer of torch was
made: elsewhere nothing is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch

from harness.torch_objects import is_dense, is_traced, leaves
from harness.watch.events import Backward, BackwardBegins, PassEnds, Step, StepBegins
from harness.watch.instrument.patches import Call, Instrument, Original, Patches
from harness.watch.monitor import ManualUpdate, Monitor
from harness.watch.session import Session

WRITES = (
    "add_",
    "sub_",
    "mul_",
    "div_",
    "copy_",
    "lerp_",
    "addcmul_",
    "addcdiv_",
    "__iadd__",
    "__isub__",
    "__imul__",
    "__setitem__",
)
"""Operations on a tensor that write to it."""


class _Loop:
    """The parameters that one loop writes to."""

    def __init__(self) -> None:
        self.leaves: dict[int, ref[torch.Tensor]] = {}
        """Leaves that the latest backward pass that was looked at reached, by the place of their numbers in memory."""
        self.waits = False
        """Whether a backward pass has ended, and nothing was written since."""
        self.written: dict[int, torch.Tensor] = {}
        """What the first update writes to, by its ids: from then on it is known what there is to update."""
        self.stands_for: ManualUpdate | None = None
        self.gives = False
        """Whether the gradients of the latest backward pass are the script's, as torch.autograd.grad's are: its updates
        are counted, and what becomes of gradients is not seen."""


class OwnUpdates:
    def __init__(self, session: Session, patches: Patches) -> None:
        self._session = session
        self.guard = session.guard(StepBegins, Step)
        self._patches = patches.guarded_by(self.guard)
        self._loops: WeakKeyDictionary[Monitor, _Loop] = WeakKeyDictionary()
        self._wrapped = False

    def backward_begins(self, monitor: Monitor, root: torch.Tensor) -> None:
        """Before the graph is freed: what it reaches may be written to."""
        if monitor.has_optimizer:
            return
        loop = self._loops.setdefault(monitor, _Loop())
        if loop.written and loop.stands_for is not None:
            loop.stands_for.param_groups[0]["params"] = list(loop.written.values())
            loop.written.clear()
        if monitor.is_sampled() or not loop.leaves:
            loop.leaves = {leaf.data_ptr(): ref(leaf) for leaf in leaves(root) if is_dense(leaf)}

    def backward_ends(self, monitor: Monitor, *, gives: bool) -> None:
        """``gives``: the gradients are given to the script, and not left in ``grad``."""
        loop = self._loops.get(monitor)
        if loop is None or not loop.leaves or monitor.has_optimizer:
            return
        loop.waits, loop.gives = True, gives
        if not self._wrapped:
            self._wrapped = True
            for name in WRITES:
                self._patches.before(torch.Tensor, name, self._writes)
            self._patches.wrap_setter(torch.Tensor, "data", self._sets)

    def _sets(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        tensor = args[0]
        loop = self._writes(tensor)
        before = tensor.data_ptr() if loop is not None else 0
        original(*args, **kwargs)
        if loop is not None:
            loop.leaves[tensor.data_ptr()] = loop.leaves.pop(before)

    def _writes(self, one: torch.Tensor) -> _Loop | None:
        """Something is about to be written to a tensor: the loop that updates it, if it is a parameter of one."""
        monitor = self._session.current()
        loop = None if monitor is None else self._loops.get(monitor)
        if loop is None or monitor is None or monitor.in_backward or monitor.has_optimizer or is_traced():
            return None
        reference = loop.leaves.get(one.data_ptr()) if is_dense(one) else None
        leaf = None if reference is None else reference()
        if leaf is None or leaf.shape != one.shape:
            return None
        self._writes_to(leaf, loop, monitor)
        return loop

    def _writes_to(self, leaf: torch.Tensor, loop: _Loop, monitor: Monitor) -> None:
        first, loop.waits = loop.waits, False
        if loop.gives:
            if first:
                monitor.own_update_made()
            return
        if first and loop.stands_for is None:
            held = [each for reference in loop.leaves.values() if (each := reference()) is not None]
            with monitor.suspended:
                loop.stands_for = ManualUpdate([p for p in held if p.grad is not None] or [leaf])
            loop.written[id(leaf)] = leaf
        elif loop.written:
            loop.written[id(leaf)] = leaf
        if first and loop.stands_for is not None:
            monitor.step_begins(loop.stands_for)


def install(session: Session, patches: Patches) -> None:
    """Replace torch's backward passes by those that are told of, before and after which updates may be made."""
    updates = OwnUpdates(session, patches)

    def backward(original: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None or monitor.in_backward:
            return original(*args, **kwargs)
        tensors = args[0] if args else kwargs["tensors"]
        if not torch.is_tensor(tensors) and not isinstance(tensors, (list, tuple)):
            tensors = original.reads(tensors)
            args, kwargs = (tensors, *args[1:]), {name: value for name, value in kwargs.items() if name != "tensors"}
        root = tensors if torch.is_tensor(tensors) else next(iter(tensors), None)
        if not torch.is_tensor(root):
            return original(*args, **kwargs)
        return differentiated(monitor, root, lambda: original(*args, **kwargs), gives=False)

    def differentiated(monitor: Monitor, root: torch.Tensor, original: Callable[[], Any], *, gives: bool) -> Any:
        with updates.guard:
            updates.backward_begins(monitor, root)
        with monitor.backward(root):
            found = original()
        with updates.guard:
            updates.backward_ends(monitor, gives=gives)
        return found

    def grad(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is not None and (root := _loss_of(args, kwargs)) is not None and not monitor.has_optimizer:
            return differentiated(monitor, root, lambda: original(*args, **kwargs), gives=True)
        if monitor is not None and monitor.batch is not None:
            monitor.batch.of.trains = True  # gradients that the script uses in its own way
        if monitor is None or monitor.in_backward or not kwargs.get("create_graph"):
            return original(*args, **kwargs)
        monitor.reached.clear()
        found = original(*args, **kwargs)
        monitor.reached_before |= monitor.reached
        return found

    patches.wrap(torch.autograd, "backward", backward)
    patches.wrap(torch.autograd, "grad", grad)


INSTRUMENTS = (Instrument((BackwardBegins, Backward, PassEnds), install),)  # a pass is known to train by them


def _loss_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """What torch.autograd.grad is asked to differentiate by tensors without a graph, once; None for anything else."""
    given = dict(zip(("outputs", "inputs"), args, strict=False)) | dict(kwargs)
    if given.get("create_graph") or given.get("retain_graph") or len(args) > 2:
        return None
    root, inputs = given.get("outputs"), given.get("inputs")
    root = root[0] if isinstance(root, (list, tuple)) and len(root) == 1 else root
    inputs = [inputs] if torch.is_tensor(inputs) else inputs
    known = isinstance(inputs, (list, tuple)) and all(torch.is_tensor(each) and each.is_leaf for each in inputs)
    return root if torch.is_tensor(root) and root.numel() == 1 and known else None
