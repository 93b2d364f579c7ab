"""Accelerate: its loaders take a batch ahead of the one that they give, to know the last; it divides losses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any
from weakref import WeakSet

from harness.watch.events import AcceleratorBackward, Pass
from harness.watch.instrument.patches import Original, Patches
from harness.watch.session import Session


class _Fetched(deque[tuple[Pass, Any, Any, Any]]):
    """Batches that a loader took before it gives them."""

    ended: Pass | None = None


def install_loaders(threads: Session, patches: Patches, module: ModuleType) -> None:
    def iterate(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        (loader,) = args
        inner, fetched = original(loader), _Fetched()
        to_skip = getattr(loader, "skip_batches", 0)
        while True:
            if threads.closed:
                yield from inner
                return
            monitor = threads.current() or threads.first
            monitor.fetching.append(fetched)
            try:
                data = next(inner)
            except StopIteration:
                break
            finally:
                monitor.fetching.pop()
            for _ in range(min(to_skip, len(fetched) - 1)):
                fetched.popleft()
            to_skip = 0
            if fetched and threads.current() is not None:
                of, indices, samples, _ = fetched.popleft()
                with threads.guarded():  # the loader may have moved, joined or cut what it took
                    monitor.give(of, indices, samples, data)
            yield data
        if fetched.ended is not None and threads.current() is not None:
            with threads.guarded():
                monitor.end_pass(fetched.ended)

    for name in ("DataLoaderShard", "DataLoaderDispatcher"):
        patches.wrap(getattr(module, name), "__iter__", iterate)


def install_accelerator(threads: Session, patches: Patches, module: ModuleType) -> None:
    entered: WeakSet[Any] = WeakSet()

    def accumulate(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        entered.add(args[0])
        return original(*args, **kwargs)

    def backward(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if monitor := threads.current():
            steps = getattr(args[0], "gradient_accumulation_steps", 1)
            monitor.emit(AcceleratorBackward(steps, args[0] in entered, monitor.locator.where()))
        return original(*args, **kwargs)

    patches.wrap(module.Accelerator, "accumulate", accumulate)
    patches.wrap(module.Accelerator, "backward", backward)


MODULES = {"accelerate.data_loader": install_loaders, "accelerate.accelerator": install_accelerator}
