"""Accelerate: its loaders take a batch ahead of the one that they give, to know the last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from harness.watch.events import Pass
from harness.watch.instrument.patches import Original, Patches
from harness.watch.monitor import Threads

MODULE = "accelerate.data_loader"


class _Fetched(deque[tuple[Pass, Any, Any, Any]]):
    """Batches that a loader took before it gives them."""

    ended: Pass | None = None


def install(threads: Threads, patches: Patches, module: ModuleType) -> None:
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
