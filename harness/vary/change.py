"""Changes: what is made otherwise in a start, at the seam that the script itself uses."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler, dataloader

from harness.watch.run.batches import LABELS

Kind = Literal[
    "as it is",
    "evaluation batches",
    "evaluation order",
    "evaluated twice",
    "held-out labels",
    "held-out labels and order",
    "training labels",
    "workers",
    "rate 0",
]


@dataclass(frozen=True)
class Change:
    """What one start has otherwise."""

    kind: Kind = "as it is"
    loaders: tuple[int, ...] = ()
    """The numbers of the DataLoaders that it is about, in the order in which the script makes them."""


def other_size(size: int) -> int:
    """Another number of rows for a batch, which leaves a last batch of another size too."""
    return size + 1 if size < 3 else max(2, size * 2 // 3)


class Permuted(Sampler[int]):
    """Rows in another order; of a loader that shuffles as many random numbers are drawn as before."""

    def __init__(self, dataset: Any, shuffles: Any, generator: torch.Generator | None) -> None:
        drawn = RandomSampler(dataset, generator=generator) if shuffles else SequentialSampler(dataset)
        self._drawn: Sampler[int] = drawn
        self._rows = len(dataset)

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[int]:
        drawn = list(self._drawn)
        order = torch.randperm(self._rows, generator=torch.Generator().manual_seed(0)).tolist()
        return iter([drawn[place] for place in order])


@dataclass(frozen=True)
class Made:
    """How a DataLoader was made."""

    size: int | None
    """Rows of a batch; None where the script makes the batches itself."""
    ordered: bool
    """Whether the order of its rows is that of its dataset, or a shuffled one of torch's own."""
    shuffles: bool


class Loaders:
    """The DataLoaders that a script makes, by number; those that a change is about are made, or give, otherwise."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self.made: dict[int, Made] = {}
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._by_sampler: dict[int, tuple[int, Any]] = {}
        """Loader numbers by the identity of what draws batches, which is held: Accelerate makes a loader of
        another's."""
        self._generator = torch.Generator().manual_seed(0)
        self.labels = self.exchanged = 0
        """Numbers of labels that were exchanged, and of those that changed."""

    def number(self, loader: Any) -> int | None:
        return self._numbers.get(loader)

    @contextmanager
    def installed(self) -> Iterator[None]:
        base = dataloader._BaseDataLoaderIter
        before = DataLoader.__init__, base.__next__
        DataLoader.__init__ = self._making(before[0])  # type: ignore[method-assign]
        base.__next__ = self._following(before[1])  # type: ignore[method-assign]
        try:
            yield
        finally:
            DataLoader.__init__, base.__next__ = before  # type: ignore[method-assign]

    def _making(self, original: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(original)

        @wraps(original)
        def made(loader: Any, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(loader, *args, **kwargs)
            given = bound.arguments
            origin = self._origin(given.get("batch_sampler"))
            number = len(self.made) + 1 if origin is None else origin
            if origin is None:
                self.made[number] = _made(given)
                if number in self._change.loaders:
                    self._change_made(given)
            if number in self._change.loaders and self._change.kind == "workers":
                _change_workers(given)
            original(*bound.args, **bound.kwargs)
            self._numbers[loader] = number
            if loader.batch_sampler is not None:
                self._by_sampler[id(loader.batch_sampler)] = number, loader.batch_sampler

        return made

    def _origin(self, sampler: Any) -> int | None:
        while sampler is not None:
            if id(sampler) in self._by_sampler:
                return self._by_sampler[id(sampler)][0]
            sampler = getattr(sampler, "batch_sampler", None)
        return None

    def _change_made(self, given: dict[str, Any]) -> None:
        if self._change.kind == "evaluation batches":
            given["batch_size"] = other_size(given.get("batch_size", 1))
        elif self._change.kind in ("evaluation order", "held-out labels and order") and _made(given).ordered:
            given["sampler"] = Permuted(given["dataset"], given.get("shuffle"), given.get("generator"))
            given["shuffle"] = None

    def _following(self, original: Callable[..., Any]) -> Callable[..., Any]:
        kinds = ("held-out labels", "held-out labels and order", "training labels")

        @wraps(original)
        def following(iterator: Any) -> Any:
            data = original(iterator)
            if self._change.kind in kinds and self._number_of(iterator) in self._change.loaders:
                return self._exchanged(data)
            return data

        return following

    def _number_of(self, iterator: Any) -> int | None:
        """Number of the loader whose iterator it is, by what draws its batches."""
        return self._origin(getattr(iterator, "_index_sampler", None))

    def _exchanged(self, data: Any) -> Any:
        found = label_of(data)
        if found is None:
            return data
        key, labels = found
        order = torch.randperm(len(labels), generator=self._generator).to(labels.device)
        others = labels[order]
        self.labels += len(labels)
        self.exchanged += int((others != labels).reshape(len(labels), -1).any(1).sum())
        return _with(data, key, others)


def label_of(data: Any) -> tuple[Any, torch.Tensor] | None:
    """Where a batch has its labels, and they; None where that cannot be told, or they are the inputs once more."""
    if isinstance(data, Mapping):
        found = [(key, value) for key, value in data.items() if key in LABELS and torch.is_tensor(value)]
        others = [value for key, value in data.items() if key not in LABELS and torch.is_tensor(value)]
    elif isinstance(data, (tuple, list)) and len(data) > 1:
        found = [(len(data) - 1, data[-1])] if torch.is_tensor(data[-1]) else []
        others = [each for each in data[:-1] if torch.is_tensor(each)]
    else:
        return None
    if len(found) != 1 or not others or not found[0][1].dim() or len(found[0][1]) != len(others[0]):
        return None
    labels = found[0][1]
    inputs = any(each.shape == labels.shape and each.dim() > 1 and each.dtype == labels.dtype for each in others)
    return None if inputs else found[0]


def _with(data: Any, key: Any, labels: torch.Tensor) -> Any:
    """A batch of the same kind with other labels."""
    if isinstance(data, tuple):
        values = [*data[:key], labels, *data[key + 1 :]]
        return type(data)(*values) if hasattr(data, "_fields") else tuple(values)
    other = copy.copy(data)
    if isinstance(data, list) or hasattr(type(data), "__setitem__"):
        other[key] = labels
    return other


def _made(given: Mapping[str, Any]) -> Made:
    own = given.get("batch_sampler") is not None
    sampler, dataset = given.get("sampler"), given["dataset"]
    in_order = sampler is None or type(sampler) is SequentialSampler
    map_style = not isinstance(dataset, IterableDataset) and hasattr(dataset, "__len__")
    size = given.get("batch_size", 1)
    shuffles = bool(given.get("shuffle"))
    return Made(None if own or not map_style else size, map_style and in_order and not own, shuffles)


def _change_workers(given: dict[str, Any]) -> None:
    """None where there are some, two where there are none."""
    if given.get("num_workers"):
        given["num_workers"] = 0
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            given.pop(name, None)
    else:
        given["num_workers"] = 2
