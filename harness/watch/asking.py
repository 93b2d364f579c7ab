"""Asking: who asks a DataLoader for its next batch, a loop that waits for the end or a script that counts.

The bytecode of a live frame says so; for a loop that is over, whose frame is gone, its source does.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType

from torch.utils.data import dataloader

from harness.findings import tree_at
from harness.watch.locate import Locator

STOPS_AT_THE_END = ("transformers", "lightning", "pytorch_lightning")
"""Packages whose loops call next() and go on with the next epoch when a pass ends before its time."""

PASSES_ON = (dataloader.__name__, __package__)
"""Modules and packages between a DataLoader's sampler and whoever asks for a batch."""

FOR = ("FOR_ITER", "SEND")
"""Instructions of a for statement and of ``yield from``: both take batches until there are no more."""


@dataclass(frozen=True)
class Asker:
    """The loop that a batch is fetched for."""

    waits_for_the_end: bool
    """Whether it takes batches until there are no more: then a shortened pass is to the script one over a smaller
    dataset. A script that calls next(), or goes through the loader again and again in a generator of its own, counts
    on as many batches as the loader has."""
    may_leave: bool = False
    """Whether there is a break or a return in it. (A Trainer says by its arguments whether it will.)"""


COUNTS = Asker(waits_for_the_end=False)


def asker(locator: Locator) -> Asker:
    """Who asks for the batch that is being fetched in this thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code, users = frame.f_code, locator.is_users(frame)
        generates = bool(code.co_flags & inspect.CO_GENERATOR)
        at = _instruction(code, frame.f_lasti)
        takes_all = dis.opname[code.co_code[at]] in FOR
        if users or (generates and takes_all):
            if not takes_all or (generates and _repeats(code, at)):
                return COUNTS
            if not generates:
                return Asker(waits_for_the_end=True, may_leave=_may_leave(code, at))
        elif not generates and not _passes_on(frame):
            package = _module(frame).partition(".")[0]
            return Asker(takes_all or package in STOPS_AT_THE_END, may_leave=package != "transformers")
        frame = frame.f_back
    return COUNTS


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _passes_on(frame: FrameType) -> bool:
    return f"{_module(frame)}.".startswith(tuple(f"{name}." for name in PASSES_ON))


def _instruction(code: CodeType, at: int) -> int:
    """Where the instruction is that ``at`` is in."""
    while at > 0 and dis.opname[code.co_code[at]] == "CACHE":
        at -= 2
    return at


def _loop(code: CodeType, at: int) -> tuple[list[dis.Instruction], int]:
    """All instructions, and where the for statement, or the ``yield from``, at this place ends."""
    instructions = list(dis.get_instructions(code))
    return instructions, next(each.argval for each in instructions if each.offset == at)


def _repeats(code: CodeType, at: int) -> bool:
    """Whether the loop is inside another one."""
    instructions, end = _loop(code, at)
    return any("JUMP_BACKWARD" in each.opname and each.offset >= end and each.argval < at for each in instructions)


def _may_leave(code: CodeType, at: int) -> bool:
    instructions, end = _loop(code, at)
    return any(
        each.opname.startswith("RETURN_") or (each.opcode in dis.hasjrel and not at <= each.argval <= end)
        for each in instructions
        if at < each.offset < end and each.opname != "RETURN_GENERATOR"
    )


def leaves_after_one(where: str | None) -> bool:
    """Whether the for statement at a place always leaves after it has done something for one batch.

    A break or return that depends on something is a limit that is meant. A loop that only leaves takes a batch out.
    """
    tree, line = tree_at(where)
    return any(
        isinstance(loop, ast.For)
        and loop.lineno <= line <= (loop.iter.end_lineno or 0)
        and any(isinstance(each, ast.Break | ast.Return) for each in [*_always_come_to(loop.body)][1:])
        and not any(isinstance(each, ast.Continue) for each in ast.walk(loop))
        for loop in ast.walk(tree)
    )


def _always_come_to(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _always_come_to(statement.body)
        else:
            yield statement
