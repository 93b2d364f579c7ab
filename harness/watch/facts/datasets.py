"""Datasets: which rows they are made of, and what the rows hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Subset, TensorDataset

from harness.watch.run.batches import NOT_CONTENT

PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("question", "context"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
)
"""Columns that belong together, as GLUE's and other corpora name them."""

MOST_ROWS = 20_000
"""Largest number of rows of a dataset that is compared row by row: hashing them takes under a second."""


def length(dataset: Any) -> int | None:
    """Length of a dataset or a sampler; None where it has none, which torch lets it say in several ways."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError, AttributeError):
        return None


def base(dataset: Any) -> tuple[int, frozenset[int] | None]:
    """What a dataset is a part of, and which of its rows; None for all of them."""
    if isinstance(dataset, Subset):
        whole: Any = dataset.dataset
        indices = dataset.indices
        while isinstance(whole, Subset):
            whole, indices = whole.dataset, [whole.indices[index] for index in indices]
        inner, within = base(whole)
        if within is not None:
            return id(dataset), None
        return inner, frozenset(int(index) for index in indices)
    table = getattr(getattr(dataset, "_data", None), "table", None)
    if table is not None and hasattr(dataset, "_indices"):
        if dataset._indices is None:
            return id(table), None
        return id(table), frozenset(dataset._indices.column(0).to_pylist())
    return id(dataset), None


def stored_rows(dataset: Any, indices: Sequence[int]) -> int:
    """How many different rows a dataset of the script's own holds at these places, at most.

    The places are looked up in what it keeps one thing of for each row: a tensor, an array, a list, a table.
    """
    size, most = length(dataset), 0
    for kept in _kept(dataset):
        if getattr(kept, "ndim", 1) and len(kept) == size:
            most = max(most, len({_hash(repr(_row(kept[index]))) for index in indices}))
    return most


def _kept(dataset: Any) -> Iterator[Any]:
    """What an object keeps that is looked up by an index, without calling the script's own code."""
    values = list(vars(dataset).values()) if hasattr(dataset, "__dict__") else []
    for value in values:
        if isinstance(value, Mapping):
            values += value.values()
        elif hasattr(value, "iloc"):
            yield value.to_numpy()
        elif is_table(value):
            yield value.with_format(None)  # without the script's own transform
        elif type(value) in (list, tuple, TensorDataset, np.ndarray) or torch.is_tensor(value):
            yield value


def is_table(dataset: Any) -> bool:
    """Whether it is a dataset of the library datasets."""
    return hasattr(dataset, "with_format") and hasattr(dataset, "column_names") and hasattr(dataset, "_data")


def row_hashes(dataset: Any) -> list[int] | None:
    """A hash of each row's content; None where a dataset cannot be read without calling the script's own code."""
    size = length(dataset)
    if not size or size > MOST_ROWS:
        return None
    if isinstance(dataset, Subset):
        inner = row_hashes(dataset.dataset)
        return None if inner is None else [inner[int(index)] for index in dataset.indices]
    if isinstance(dataset, TensorDataset):
        columns = [tensor.tolist() for tensor in dataset.tensors]
        return [_hash(repr(row)) for row in zip(*columns, strict=True)]
    if is_table(dataset):
        rows = dataset.with_format(None)[:]
        names = sorted(name for name in rows if name.lower() not in NOT_CONTENT)
        return [_hash(repr(row)) for row in zip(*(rows[name] for name in names), strict=True)] if names else None
    if type(dataset) in (list, tuple):
        return [_hash(repr(_row(row))) for row in dataset]
    return None


def stored_columns(dataset: Any, wanted: Callable[[str], bool], most: int) -> dict[str, list[Any]]:
    """The first values of columns whose names are wanted; none where reading them calls the script's own code."""
    if is_table(dataset):
        names = list(filter(wanted, dataset.column_names))
        return dict(dataset.with_format(None).select_columns(names)[:most]) if names else {}
    rows = dataset[:most] if type(dataset) in (list, tuple) else ()
    if not all(type(row) is dict for row in rows):
        return {}
    names = [name for name in (rows[0] if rows else ()) if isinstance(name, str) and wanted(name)]
    return {name: [row.get(name) for row in rows] for name in names}


def _hash(text: str) -> int:
    """The same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _row(row: Any) -> Any:
    if isinstance(row, Mapping):
        return sorted((str(name), repr(plain(value))) for name, value in row.items() if name not in NOT_CONTENT)
    if isinstance(row, (list, tuple)):
        return [plain(value) for value in row]
    return plain(row)


def plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
