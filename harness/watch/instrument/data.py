"""Passes over DataLoaders, and the batches that they give."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from typing import Any
from weakref import WeakKeyDictionary

from torch.utils.data import dataloader

from harness.torch_objects import unchanged_random_state
from harness.watch.asking import asker
from harness.watch.events import Batch, LoaderMade, Pass, PassBegins, PassEnds
from harness.watch.guards import Guard
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.monitor import Monitor
from harness.watch.session import Session

MOST_PLANNED = 10_000_000
"""Largest number of batches of a pass that is gone through. Of more it is left when there is enough."""


class _Indices:
    """A sampler's iterator, which remembers what it drew and may leave out the middle of a long pass."""

    def __init__(self, drawn: Iterator[Any], seen: Pass, session: Session, guard: Guard) -> None:
        self.drawn, self._seen, self._session, self._guard = drawn, seen, session, guard
        self._shortening = session.options.shortening
        self._given = 0
        self.queue: list[Any] = []
        self.asked = False
        """Whether the script has asked for a batch; for workers some are drawn before."""

    def __next__(self) -> Any:
        seen = self._seen
        if seen.shortened:
            raise StopIteration
        index, ends, skips = next(self.drawn), False, False
        if not self._guard.off:
            with self._guard:
                ends, skips = self._ends()
        if ends and not skips:
            raise StopIteration
        if skips:
            for index in self.drawn:  # noqa: B007, the last one is wanted
                pass
        self._given += 1
        self.queue.append(index)
        return index

    def _ends(self) -> tuple[bool, bool]:
        """Whether the pass is left before its time, and if so, whether its last batch is given before."""
        seen, shortening = self._seen, self._shortening
        if not self.asked or shortening is None or not shortening.is_enough(seen, self._given):
            return False, False
        loop = asker(self._session.locator)
        if not loop.waits_for_the_end:
            self._shortening = None  # the script has to get as many as it counts on
            return False, False
        skips = shortening.can_skip_to_the_last(seen)
        seen.shortened, seen.may_be_left = True, loop.may_leave
        return True, skips


class _Passes:
    """The iterators of DataLoaders that are being gone through."""

    def __init__(self, session: Session, guard: Guard) -> None:
        self._session, self._guard = session, guard
        self._begun: WeakKeyDictionary[Any, tuple[Monitor, Pass]] = WeakKeyDictionary()
        """Iterator to its pass, and the monitor in which that pass began."""

    def made(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        monitor = self._session.current()
        if monitor is None:
            return
        iterator, loader = args[0], _loader(args, kwargs)
        begun = self._begin(monitor, iterator, loader)
        if loader.num_workers == 0 and iterator._auto_collation:
            iterator._collate_fn = _Remembering(iterator._collate_fn, begun)

    def began_again(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := self._session.current():
            self._begin(monitor, args[0], _loader(args, kwargs))

    def _begin(self, monitor: Monitor, iterator: Any, loader: Any) -> Pass:
        planned = _planned(iterator)
        _, old = self._begun.get(iterator, (None, None))
        if old is not None and old.batches:
            monitor.end_pass(old)  # of workers that stay
        elif old is not None and old in monitor.passes:
            monitor.passes.remove(old)  # workers' iterators begin twice
        begun = monitor.begin_pass(loader, planned)
        begun.iterator = weakref.ref(iterator)
        self._begun[iterator] = monitor, begun
        iterator._sampler_iter = _Indices(iterator._sampler_iter, begun, self._session, self._guard)
        return begun

    def following(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        (iterator,) = args
        current = self._session.current()
        if current is None or iterator not in self._begun:
            return original(iterator)
        monitor, begun = self._begun[iterator]
        if begun not in monitor.passes and begun in current.passes:
            monitor = current  # its thread turned out to be a loop of its own
        if isinstance(iterator._sampler_iter, _Indices):
            iterator._sampler_iter.asked = True
        try:
            data = original(iterator)
        except StopIteration:
            begun.exhausted = True
            if monitor.fetching:
                monitor.fetching[-1].ended = begun
            else:
                monitor.end_pass(begun)
            raise
        queue = getattr(iterator._sampler_iter, "queue", None)
        index = queue.pop(0) if queue else None
        # Where workers may overtake each other, nobody says of which rows a batch is.
        given = begun, index if getattr(iterator, "_in_order", True) else None, begun.samples, data
        begun.samples = None
        if monitor.fetching:
            monitor.fetching[-1].append(given)
        else:
            monitor.give(*given)
        return data

    def put_back(self) -> None:
        """Iterators that are still being gone through are as torch made them."""
        for iterator in list(self._begun):
            if isinstance(iterator._sampler_iter, _Indices):
                iterator._sampler_iter = iterator._sampler_iter.drawn
            for holder in (iterator, getattr(iterator, "_dataset_fetcher", None)):
                for name in ("_collate_fn", "collate_fn"):
                    if isinstance(getattr(holder, name, None), _Remembering):
                        setattr(holder, name, getattr(holder, name).collate)


def install(session: Session, patches: Patches) -> None:
    passes = _Passes(session, patches.guard)
    patches.at_the_end(passes.put_back)

    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := session.current():
            monitor.emit(LoaderMade(args[0], monitor.locator.where()))

    patches.wrap(dataloader.DataLoader, "__init__", made)
    base = dataloader._BaseDataLoaderIter
    patches.wrap(base, "__init__", passes.made)
    patches.wrap(base, "_reset", passes.began_again)
    patches.wrap(base, "__next__", passes.following)


INSTRUMENTS = (Instrument((Batch, LoaderMade, PassBegins, PassEnds), install),)


def _planned(iterator: Any) -> int | None:
    """How many batches the pass has; None where its sampler does not say, or says it by code of the script's that
    draws: what has a length of its own is asked with the random states set aside, and may fail."""
    if iterator._dataset_kind != dataloader._DatasetKind.Map:
        return None
    sampler = iterator._index_sampler
    kinds = (type(sampler), type(getattr(sampler, "sampler", None)))
    own = not all(kind.__module__.startswith(("torch.", "builtins")) for kind in kinds)
    with suppress(Exception), unchanged_random_state() if own else nullcontext():
        planned = len(sampler)
        return planned if planned <= MOST_PLANNED else None
    return None


def _loader(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return args[1] if len(args) > 1 else kwargs["loader"]


class _Remembering:
    """A collate function that keeps what the dataset gave until the batch is given."""

    def __init__(self, collate: Any, begun: Pass) -> None:
        functools.update_wrapper(self, collate, updated=())
        self.collate, self._begun = collate, begun

    def __call__(self, samples: Any) -> Any:
        self._begun.samples = samples
        return self.collate(samples)
