"""Where in a script the loop's steps are: by their names, since nothing has run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from harness.repairs.source import LOOPS, Source, argument, called, dotted, looks_like, receiver, targets


@dataclass(frozen=True)
class StepCall:
    """A call that makes an update."""

    call: cst.Call
    optimizer: str


@dataclass(frozen=True)
class Counted:
    """A loop that counts its batches."""

    loop: cst.For
    number: str
    made: str
    """How many batches there have been, this one among them, in the loop's own words."""
    loader: str


@dataclass(frozen=True)
class Window:
    """A condition under which micro-batches become an update."""

    condition: cst.If
    counted: Counted
    size: str

    def is_full(self, source: Source) -> bool:
        """Whether it says that the window is full: the number of batches made is a multiple of its size.

        With another remainder the first window of each loop is shorter, and no later one shows that.
        """
        made, size = self.counted.made, self.size
        last = f"{int(size) - 1}" if size.isdigit() else f"{size}-1"
        full = [f"{made}%{size}==0", f"not{made}%{size}"]
        full += [f"{self.counted.number}%{size}=={last}"] * (made != self.counted.number)
        parts = re.split(r"\band\b|\bor\b", source.code(self.condition.test))
        return any(_bare(part) in [_bare(each) for each in full] for part in parts)


def _bare(code: str) -> str:
    return re.sub(r"[\s()]", "", code)


def optimizer_steps(source: Source, within: cst.CSTNode) -> list[StepCall]:
    """Calls of ``optimizer.step()`` and ``scaler.step(optimizer)``."""
    found = []
    for call in source.calls(within, "step"):
        of = dotted(receiver(call))
        given = dotted(call.args[0].value) if call.args else ""
        if given and is_optimizer(source, given):
            found.append(StepCall(call, given))
        elif of and is_optimizer(source, of):
            found.append(StepCall(call, of))
    return found


def scaler_of(step: cst.Call) -> str | None:
    """The GradScaler that makes a step; None where the optimizer does."""
    return dotted(receiver(step)) if step.args and looks_like(dotted(receiver(step)), "scal") else None


def is_optimizer(source: Source, name: str) -> bool:
    last = name.rpartition(".")[2]
    if looks_like(last, "optim|^opt"):
        return not looks_like(last, "sched")
    return name in optimizers(source)


def optimizers(source: Source) -> list[str]:
    """What is made from the parameters of a model."""
    return [
        name
        for assign in source.all(source.module, cst.Assign)
        if isinstance(assign.value, cst.Call) and source.calls(assign.value, "parameters", "named_parameters")
        for name in targets(assign)
        if name and not looks_like(name, "sched|^(params?|parameters|total|count|num|n_)")
    ]


def schedulers(source: Source) -> list[str]:
    """What is made from an optimizer and stepped, or named so."""
    return [
        name
        for assign in source.all(source.module, cst.Assign)
        if isinstance(assign.value, cst.Call) and (looks_like(called(assign.value), "sched|LR$|Plateau|warmup"))
        for name in targets(assign)
        if name
    ]


def is_scheduler_step(source: Source, call: cst.Call) -> bool:
    name = dotted(receiver(call))
    return called(call) == "step" and (looks_like(name, "sched") or name in schedulers(source))


def counted_loops(source: Source, within: cst.CSTNode) -> Iterator[Counted]:
    """Loops over ``enumerate(loader)``."""
    for loop in source.all(within, cst.For):
        iterated = loop.iter
        if (
            not isinstance(iterated, cst.Call)
            or called(iterated) != "enumerate"
            or not isinstance(loop.target, cst.Tuple)
        ):
            continue
        number, loader = dotted(loop.target.elements[0].value), dotted(iterated.args[0].value)
        start = argument(iterated, "start", 1)
        first = "0" if start is None else source.code(start.value)
        if number and loader and first in ("0", "1"):
            yield Counted(loop, number, number if first == "1" else f"{number} + 1", loader)


def windows(source: Source, within: cst.CSTNode) -> Iterator[Window]:
    """Conditions of the form ``(step + 1) % n == 0`` under which a step is made."""
    for counted in counted_loops(source, within):
        for condition in source.all(counted.loop, cst.If):
            size = _modulus(source, condition.test)
            if (
                size
                and optimizer_steps(source, condition.body)
                and f"len({counted.loader})" not in source.code(condition.test)
            ):
                yield Window(condition, counted, size)


def _modulus(source: Source, test: cst.BaseExpression) -> str | None:
    """n of a remainder by n."""
    for operation in source.all(test, cst.BinaryOperation):
        if isinstance(operation.operator, cst.Modulo):
            return source.code(operation.right)
    return None


def window_sizes(source: Source, backward: cst.Call) -> list[str]:
    """Sizes by which a script counts the micro-batches of an update: n of ``step % n``, or of ``range(n)``."""
    found = []
    for loop in source.enclosing(backward, LOOPS):
        found += [
            size
            for condition in source.all(loop, cst.If)
            if optimizer_steps(source, condition) and (size := _modulus(source, condition.test)) is not None
        ]
        if isinstance(loop, cst.For) and (size := times(source, loop)) and not optimizer_steps(source, loop):
            found.append(size)
    return list(dict.fromkeys(found))


def times(source: Source, loop: cst.For) -> str | None:
    """n of ``for … in range(n)``, through tqdm and the like."""
    for call in source.calls(loop.iter, "range"):
        if len(call.args) == 1:
            return source.code(call.args[0].value)
        if len(call.args) != 2:
            continue
        first, last = source.code(call.args[0].value), call.args[1].value
        if first == "0":
            return source.code(last)
        if first == "1" and isinstance(last, cst.BinaryOperation) and isinstance(last.operator, cst.Add):
            return source.code(last.left) if source.code(last.right) == "1" else None  # range(1, n + 1)
    return None


def epoch_loops(source: Source) -> list[cst.For]:
    """Loops of a known number of times around the loop over batches."""
    return [
        loop
        for loop in source.all(source.module, cst.For)
        if times(source, loop) and (source.all(loop.body, cst.For) or source.calls(loop.body))
    ]


def trains(source: Source, node: cst.CSTNode) -> bool:
    """Whether something goes backward in it."""
    return bool(source.calls(node, "backward", "step"))


def outermost_loop_that_only_evaluates(source: Source, node: cst.CSTNode) -> cst.CSTNode | None:
    """What is around a forward pass of an evaluation: its loop, or the block without gradients around that."""
    kinds = (*LOOPS, cst.With)
    around = [each for each in source.enclosing(node, kinds) if not trains(source, each)]
    return around[-1] if around else None
