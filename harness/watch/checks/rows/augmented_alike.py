"""Generators of random numbers that the workers of a DataLoader each have a copy of."""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
from collections.abc import Iterator
from itertools import islice
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch.utils.data import IterableDataset

from harness.watch.check import Check, Found, Held, Verdict
from harness.watch.events import PassEnds

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)

IN_WORKERS = ("__getitem__", "__getitems__", "__call__", "forward", "transform", "augment")
"""Methods of datasets and of their transforms that a worker calls."""

MOST_OBJECTS, MOST_TRANSFORMS, MOST_DEEP = 256, 16, 4
"""Parts of a dataset, and of a list in it, that are looked at, and how deep."""


class AugmentedAlike(Check):
    """Each worker of the DataLoader draws the same random numbers.

    ## Why is this a bug?
    A worker begins with a copy of the dataset as it is in the main process, and DataLoader starts new ones for each
    epoch. torch seeds its own generator in them, and those of NumPy and Python; a generator that the dataset or a
    transform holds itself is copied as it is. So all workers change their rows alike, and in the same way in each
    epoch: the augmentation is a few fixed changes, which the model sees again and again.

    ## What to do
    Give each worker another seed with `worker_init_fn`, from `torch.utils.data.get_worker_info().seed`, or draw from
    torch's own generator.

    ## When it is right
    A generator that no method draws from for a row is not reported, nor is a loader with one worker, with a
    `worker_init_fn` or without training, nor a class that seeds it by row or by worker itself. Ignore this warning if
    all workers are to change their rows alike.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#randomness-in-multi-process-data-loading
    - https://github.com/TorchDSP/torchsig/issues/343
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "dataset with a generator of random numbers"

    def begin(self) -> None:
        self._looked_at: WeakSet[Any] = WeakSet()

    def on_pass_ends(self, event: PassEnds) -> None:
        loader = event.of.loader
        if not event.of.trains or loader in self._looked_at or isinstance(loader.dataset, IterableDataset):
            return
        self._looked_at.add(loader)
        owners = [(type(each).__name__, name) for each, name in _generators(loader.dataset) if _draws(type(each), name)]
        if owners:
            workers = 0 if loader.worker_init_fn is not None else loader.num_workers
            self.says(self.judge(owners, workers), event.of.where)

    @staticmethod
    def judge(owners: list[tuple[str, str]], workers: int) -> Verdict:
        """Classes and attributes that hold a generator which rows are drawn with, and the workers that have a copy; 0
        where each is given a seed."""
        held = ".".join(owners[0])
        if workers < 2:
            return Held(f"{held} is drawn from in one process, or seeded in each worker")
        return Found(
            expected="workers that draw different random numbers",
            observed=f"{workers} workers each have a copy of {held}, and begin with it as it is in the main process",
        )


def _generators(dataset: Any) -> Iterator[tuple[Any, str]]:
    """The parts of a dataset that hold a generator, each with the attribute; nothing of them is computed."""
    seen, level = set[int](), [dataset]
    for _ in range(MOST_DEEP):
        inner: list[Any] = []
        for each in level:
            if id(each) not in seen and len(seen) < MOST_OBJECTS:
                seen.add(id(each))
                for name, value in _parts(each):
                    if isinstance(value, GENERATORS):
                        yield each, name
                    elif isinstance(value, (list, tuple, dict)) or type(getattr(value, "__dict__", None)) is dict:
                        inner.append(value)
        level = inner


def _parts(of: Any) -> Iterator[tuple[str, Any]]:
    """What an object has by name, and the first of what a container has: one of many has rows."""
    if isinstance(of, (list, tuple)):
        yield from (("", each) for each in of[:MOST_TRANSFORMS])
    elif not isinstance(of, torch.Tensor):
        fields = of if isinstance(of, dict) else getattr(of, "__dict__", {})
        yield from [(str(name), value) for name, value in islice(fields.items(), MOST_OBJECTS)]


def _draws(of: type, attribute: str) -> bool:
    """Whether a method that a worker calls reads the attribute, itself or by another method of the class, and none of
    them gives a seed, of the worker or of the row."""
    methods: dict[str, set[str]] = {}
    for base in reversed(of.__mro__[:-1]):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            continue
        for node in ast.walk(body):
            if isinstance(node, ast.FunctionDef):
                inner = [*ast.walk(node)]
                methods[node.name] = {each.attr for each in inner if isinstance(each, ast.Attribute)}
                methods[node.name] |= {each.id for each in inner if isinstance(each, ast.Name)}
    called, new = set[str](), {name for name in IN_WORKERS if name in methods}
    while new:
        called |= new
        new = {name for each in new for name in methods[each] if name in methods} - called
    read = set[str]().union(*(methods[name] for name in called))
    return attribute in read and not read & {"get_worker_info", "manual_seed", "seed"}
