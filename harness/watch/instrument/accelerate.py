"""Accelerate: its loaders take a batch ahead of the one that they give, to know the last; it divides losses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any
from weakref import WeakSet

from harness.watch.events import AcceleratorBackward, Batch, Pass, PassBegins, PassEnds
from harness.watch.guards import Guard
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.monitor import Monitor
from harness.watch.session import Session


class _Fetched(deque[tuple[Pass, Any, Any, Any]]):
    """Batches that a loader took before it gives them."""

    ended: Pass | None = None


class _Given:
    """The batches of one pass over a loader, each told of when it is given and not when it is taken."""

    def __init__(self, session: Session, guard: Guard, loader: Any, inner: Iterator[Any]) -> None:
        self._session, self._guard, self._inner = session, guard, inner
        self._fetched = _Fetched()
        self._to_skip = getattr(loader, "skip_batches", 0)

    def batches(self) -> Iterator[Any]:
        while not (self._session.closed or self._guard.off):
            monitor = self._session.current() or self._session.first
            monitor.fetching.append(self._fetched)
            try:
                data = next(self._inner)
            except StopIteration:
                with self._guard:
                    self._ends(monitor)
                return
            finally:
                monitor.fetching.pop()
            with self._guard:
                self._gives(monitor, data)
            yield data
        yield from self._inner

    def _gives(self, monitor: Monitor, data: Any) -> None:
        for _ in range(min(self._to_skip, len(self._fetched) - 1)):
            self._fetched.popleft()
        self._to_skip = 0
        if self._fetched and self._session.current() is not None:
            of, indices, samples, _ = self._fetched.popleft()
            monitor.give(of, indices, samples, data)  # the loader may have moved, joined or cut what it took

    def _ends(self, monitor: Monitor) -> None:
        if self._fetched.ended is not None and self._session.current() is not None:
            monitor.end_pass(self._fetched.ended)


def install_loaders(session: Session, patches: Patches, module: ModuleType) -> None:
    guard = patches.guard

    def iterate(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        return _Given(session, guard, args[0], original(*args)).batches()

    for name in ("DataLoaderShard", "DataLoaderDispatcher"):
        patches.wrap(getattr(module, name), "__iter__", iterate)


def install_accelerator(session: Session, patches: Patches, module: ModuleType) -> None:
    entered: WeakSet[Any] = WeakSet()

    def accumulate(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        entered.add(args[0])
        return original(*args, **kwargs)

    def backward(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if monitor := session.current():
            steps = getattr(args[0], "gradient_accumulation_steps", 1)
            monitor.emit(AcceleratorBackward(steps, args[0] in entered, monitor.locator.where()))
        return original(*args, **kwargs)

    patches.wrap(module.Accelerator, "accumulate", accumulate)
    patches.wrap(module.Accelerator, "backward", backward)


INSTRUMENTS = (
    Instrument((Batch, PassBegins, PassEnds), install_loaders, "accelerate.data_loader"),
    Instrument((AcceleratorBackward,), install_accelerator, "accelerate.accelerator"),
)
