"""Where the watch looks: wrapped functions, and torch's public hooks where they cost no more. One file a library."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from harness.watch.instrument import (
    accelerate,
    arithmetic,
    backward,
    data,
    datasets,
    lightning,
    losses,
    metrics,
    optimizers,
    options,
    permutations,
    processes,
    reports,
    schedulers,
    seeds,
    sklearn,
    states,
    torch_modules,
    transformers,
    warned,
)
from harness.watch.instrument.patches import Instrument, Patches
from harness.watch.session import Session

INSTRUMENTS: tuple[Instrument, ...] = tuple(
    each
    for part in (
        torch_modules,
        data,
        backward,
        optimizers,
        schedulers,
        seeds,
        options,
        losses,
        arithmetic,
        permutations,
        states,
        processes,
        reports,
        warned,
        accelerate,
        datasets,
        lightning,
        metrics,
        sklearn,
        transformers,
    )
    for each in part.INSTRUMENTS
)
"""All instruments, in the order in which they are put on."""

_in_use: list[Session] = []


def is_in_use() -> bool:
    """Whether somebody watches in this process."""
    return bool(_in_use)


@contextmanager
def instrumented(session: Session, *, hooked: bool = True, operators: bool = True) -> Iterator[None]:
    """Report to ``session`` what happens; afterwards everything is as it was.

    Without ``hooked`` no hook is registered on the steps of optimizers: torch lets none be added or removed in such a
    hook, and who begins and ends a watch there calls :func:`optimizers.step_hooks` itself. Without ``operators`` those
    of tensors stay as they are; otherwise those are watched of which somebody is told.
    """
    patches = Patches(session.fails)
    with ExitStack() as stack:
        stack.callback(patches.undo)
        _in_use.append(session)
        stack.callback(_in_use.remove, session)
        for handle in optimizers.hooks(session) if hooked else ():
            stack.callback(handle.remove)
        for instrument in INSTRUMENTS:
            if instrument not in arithmetic.INSTRUMENTS or (operators and any(map(session.wants, instrument.tells))):
                _put_on(instrument, session, patches)
        yield


def _put_on(instrument: Instrument, session: Session, patches: Patches) -> None:
    own = patches.guarded_by(session.guard(*instrument.tells))
    if instrument.module is not None:
        own.when_imported(instrument.module, functools.partial(instrument.install, session, own))
    else:
        with own.guard:
            instrument.install(session, own)
