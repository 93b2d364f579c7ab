"""Loaders: what DataLoaders gave, in which order, how often, and for what."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary, ref

import xxhash
from torch.utils.data import DataLoader

from harness.describe.description import Line
from harness.describe.lines import Section, line, spread
from harness.findings import count
from harness.watch.bounded import MOST
from harness.watch.events import (
    Batch,
    LoaderMade,
    Pass,
    PassEnds,
    RowsPrepared,
)
from harness.watch.facts.called_models import Names
from harness.watch.facts.datasets import length
from harness.watch.facts.loaders import LoaderUnread
from harness.watch.facts.samplers import batch_sampler
from harness.watch.run.batches import KeptBatches, Use

MOST_USES = 4
"""Passes whose batches are followed after them. By reasoning: the passes of a loader are alike."""

MOST_PREPARED = 64
"""Calls that changed the number of rows that are said: more than a script prepares datasets."""

MOST_INDICES = 1_000_000
"""Indices of a pass that are remembered, to compare the next pass with it."""

ROLES = ("train", "evaluation", "read for something else")
"""What passes over a DataLoader are for, as far as the model's calls say. Baselines keep these names."""

NOT_GIVEN = "not passed to a model directly"
"""How the last of them is shown."""


@dataclass(eq=False)
class _Loader:
    """The passes over a DataLoader that were for one thing."""

    role: str
    rows: int | None
    batch_size: int | None
    drops_last: bool = False
    planned: int | None = None
    made: str | None = None
    where: str | None = None
    """Where its first batch was taken."""
    passes: int = 0
    to_the_end: int = 0
    """Passes that were gone through to their end."""
    shortened: int = 0
    """Passes that the watch shortened."""
    left: int = 0
    """Other passes that were left before their end."""
    pass_rows: tuple[int, int] | None = None
    """The fewest and the most rows of a pass that was not shortened."""
    before: array[int] | None = None
    """The indices of the pass before, as far as the sampler says."""
    first: bytes | None = None
    """A digest of those of the first pass."""
    orders: set[str] = field(default_factory=set)
    twice: bool = False
    """Whether a row came twice in a pass."""
    largest: int = 0
    """Rows of the largest batch, as far as the sampler says."""
    uses: list[Use] = field(default_factory=list)
    """What became of the batches of its first passes after these."""

    def count(self, ended: Pass) -> None:
        self.passes += 1
        self.to_the_end += ended.exhausted
        self.shortened += ended.shortened
        self.left += not (ended.shortened or ended.exhausted)
        if not ended.shortened:
            fewest, most = self.pass_rows or (ended.rows, ended.rows)
            self.pass_rows = min(fewest, ended.rows), max(most, ended.rows)

    def with_passes_of(self, other: _Loader) -> _Loader:
        """This one, with the passes over another that was made for the same."""
        rows = [each for seen in (self, other) for each in seen.pass_rows or ()]
        return replace(
            self,
            passes=self.passes + other.passes,
            to_the_end=self.to_the_end + other.to_the_end,
            shortened=self.shortened + other.shortened,
            left=self.left + other.left,
            pass_rows=(min(rows), max(rows)) if rows else None,
            uses=[*self.uses, *other.uses][:MOST_USES],
        )

    def as_used(self) -> _Loader:
        """This one; for what its batches were kept, where models were given them after the passes alone."""
        of = 0 if any(use.trained for use in self.uses) else 1
        kept = self.role == ROLES[2] and any(use.trained or use.evaluated for use in self.uses)
        return replace(self, role=ROLES[of]) if kept else self

    @property
    def size(self) -> int | None:
        """Rows of a whole batch."""
        return self.batch_size or self.largest or None


@dataclass(eq=False)
class _OpenPass:
    """A pass that is not over."""

    indices: array[int] = field(default_factory=lambda: array("q"))
    largest: int = 0


class Loaders(Section):
    """What DataLoaders gave: which rows, in which order, how often."""

    def begin(self) -> None:
        self._loaders: list[tuple[ref[Any], dict[str, _Loader]]] = []
        """Each loader in the order of their making, with what is known by what its passes were for."""
        self._of: WeakKeyDictionary[Any, dict[str, _Loader]] = WeakKeyDictionary()
        self._made: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()
        self._reading: WeakKeyDictionary[Pass, _OpenPass] = WeakKeyDictionary()
        self._unread: list[LoaderUnread] = []
        self._prepared: list[RowsPrepared] = []
        self._kept = self.monitor.fact(KeptBatches)

    def on_loader_made(self, event: LoaderMade) -> None:
        self._made[event.loader] = event.where
        self._entries(event.loader)

    def on_loader_unread(self, fact: LoaderUnread) -> None:
        self._unread.append(fact)

    def on_rows_prepared(self, event: RowsPrepared) -> None:
        if len(self._prepared) < MOST_PREPARED:
            self._prepared.append(event)

    def on_batch(self, event: Batch) -> None:
        reading = self._reading.setdefault(event.of, _OpenPass())
        indices = event.indices if isinstance(event.indices, (list, tuple)) else [event.indices]
        known = all(isinstance(each, int) for each in indices)
        if known and len(reading.indices) < MOST_INDICES:
            reading.indices.extend(indices)
            reading.largest = max(len(indices), reading.largest)

    def on_pass_ends(self, event: PassEnds) -> None:
        of, reading = event.of, self._reading.pop(event.of, _OpenPass())
        seen = self._seen(of)
        seen.count(of)
        if len(seen.uses) < MOST_USES:
            seen.uses.append(self._kept.of(of))
        seen.planned, seen.largest = of.planned, max(seen.largest, reading.largest)
        indices, before, seen.before = reading.indices, seen.before, reading.indices
        if not indices:
            return
        if seen.first is None:
            seen.first = xxhash.xxh3_64_digest(indices.tobytes())
        twice = len(set(indices)) < len(indices)
        seen.twice |= twice
        in_order = all(one < other for one, other in pairwise(indices))
        if in_order:
            seen.orders.add("in order")
        elif twice:
            seen.orders.add("drawn with repetition")
        elif before is None:
            seen.orders.add("shuffled")
        else:
            shared = min(len(before), len(indices))
            same = before[:shared] == indices[:shared]
            seen.orders.add("shuffled alike each time" if same else "shuffled anew each time")

    def _entries(self, loader: DataLoader[Any]) -> dict[str, _Loader]:
        if loader not in self._of:
            self._of[loader] = {}
            if len(self._loaders) >= MOST:
                self._let_go()
            self._loaders.append((ref(loader), self._of[loader]))
        return self._of[loader]

    def _let_go(self) -> None:
        """Keep of loaders that are gone one for each thing that they were made for."""
        gone: dict[tuple[object, ...], dict[str, _Loader]] = {}
        for _, entries in [each for each in self._loaders if each[0]() is None]:
            alike = tuple(_kind(entries[role]) for role in ROLES if role in entries)
            before = gone.setdefault(alike, entries)
            if before is not entries:
                before |= {role: before[role].with_passes_of(seen) for role, seen in entries.items()}
        kept = [id(each) for each in gone.values()]
        self._loaders = [each for each in self._loaders if each[0]() is not None or id(each[1]) in kept]

    def _seen(self, of: Pass) -> _Loader:
        """What is known of the passes over a loader that are for the same as this one."""
        role, loader, entries = ROLES[0 if of.trains else 1 if of.forwards else 2], of.loader, self._entries(of.loader)
        if role not in entries:
            sampler = batch_sampler(loader)
            size, drops = getattr(loader, "batch_size", None), bool(getattr(sampler, "drop_last", False))
            rows = length(getattr(loader, "dataset", None))
            entries[role] = _Loader(role, rows, size, drops, made=self._made.get(loader), where=of.where)
        return entries[role]

    def lines(self) -> Iterator[Line]:
        names = Names()
        for place, prepared in enumerate(self._prepared):
            what = "kept" if prepared.by == "filter" else "made"
            text = f"{prepared.by} {what} {prepared.made:,} of {count(prepared.rows, 'row')}"
            name = names.of(("prepared", place), f"preparing.{prepared.by}")
            yield line("data", text, {"rows": prepared.rows, what: prepared.made}, prepared.where, of=name)
        for key, seen in enumerate(self._merged()):
            yield self._line(seen, names.of(key, seen.role))
        for place, fact in enumerate(self._unread):
            text, of = "a DataLoader was made and never read", names.of(("unread", place), "unread")
            yield line("data", text, {"rows": fact.rows}, fact.where, of=of)

    def _merged(self) -> list[_Loader]:
        """Loaders that are made anew for each pass over the same rows, as one."""
        merged: dict[tuple[object, ...], _Loader] = {}
        for seen in (entries[role].as_used() for _, entries in self._loaders for role in ROLES if role in entries):
            before = merged.get(_kind(seen))
            merged[_kind(seen)] = seen if before is None else before.with_passes_of(seen)
        return list(merged.values())

    def _line(self, seen: _Loader, name: str) -> Line:
        order = _order(seen.orders)
        facts: dict[str, Any] = {
            "rows": seen.rows,
            "batch_size": seen.size,
            "batches": seen.planned,
            "order": order,
            "passes": seen.passes,
            "passes_to_the_end": seen.to_the_end,
        }
        text = [count(seen.rows, "row") if seen.rows is not None else "rows of unknown number"]
        if seen.size is not None:
            text.append(f"batches of {seen.size}")
        if order is not None:
            text.append(order)
        whole_batches = divmod(seen.rows, seen.size) if seen.rows is not None and seen.size else (0, 0)
        if (rest := whole_batches[1]) and seen.planned in (whole_batches[0], whole_batches[0] + 1):
            facts["last_batch"] = "dropped" if seen.drops_last else rest
            text.append(f"the last batch of {rest}{' dropped' if seen.drops_last else ''}")
        if seen.pass_rows is not None and seen.orders:
            facts["rows_each_pass"] = [*seen.pass_rows]
            facts["twice_in_a_pass"] = seen.twice
            if seen.rows is not None and (max(seen.pass_rows) != seen.rows or seen.twice):
                text.append(f"{spread(seen.pass_rows)} rows a pass")
        passes = count(seen.passes, "pass") if seen.passes > 1 else "one pass"
        passes += f", {seen.left} left before the end" if seen.left else ""
        text.append(passes + (", shortened here" if seen.shortened else ""))
        if seen.first is not None and not seen.shortened:
            facts["first_order"] = seen.first.hex()
        shown = name.replace(ROLES[2], NOT_GIVEN)
        return line("data", f"{shown}: {', '.join(text)}", facts, seen.made or seen.where, of=name.replace(" ", "_"))


def _kind(seen: _Loader) -> tuple[object, ...]:
    """What passes have in common that are shown as one."""
    return seen.role, seen.rows, seen.size, seen.where, _order(seen.orders)


def _order(orders: set[str]) -> str | None:
    if len(orders) > 1:
        orders = orders - {"shuffled"}
    return None if not orders else next(iter(orders)) if len(orders) == 1 else "in several orders"
