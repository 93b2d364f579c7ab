"""Samplers: what draws the rows of a DataLoader, inside Accelerate's shards of it."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler, SubsetRandomSampler


def row_sampler(loader: Any) -> Any:
    """The sampler that draws rows, behind samplers that make batches of them."""
    inner = getattr(batch_sampler(loader), "sampler", None)
    return getattr(loader, "sampler", None) if inner is None else inner  # it may be empty, or have no length


def batch_sampler(loader: Any) -> Any:
    """The batch sampler, inside Accelerate's shards of it."""
    batches = getattr(loader, "batch_sampler", None)
    while batches is not None and hasattr(batches, "batch_sampler"):
        batches = batches.batch_sampler
    return batches


def chosen_rows(loader: Any) -> list[int] | None:
    """The rows among which torch's own sampler of some rows draws; None for any other sampler."""
    sampler = row_sampler(loader)
    return [int(index) for index in sampler.indices] if isinstance(sampler, SubsetRandomSampler) else None


def skipped_batches(loader: Any) -> int:
    """How many batches Accelerate leaves out at the beginning."""
    batches = getattr(loader, "batch_sampler", None)
    while batches is not None and not hasattr(batches, "skip_batches"):
        batches = getattr(batches, "batch_sampler", None)
    return int(getattr(batches, "skip_batches", 0))


def shares(loader: Any) -> int:
    """How many parts the batches or rows of a dataset are divided into, of which a loader gives one."""
    parts, batches = 1, getattr(loader, "batch_sampler", None)
    while batches is not None:
        parts = max(parts, getattr(batches, "num_processes", 1))
        batches = getattr(batches, "batch_sampler", None)
    return int(max(parts, getattr(row_sampler(loader), "num_replicas", 1)))


def has_torchs_own_sampler(loader: Any) -> bool:
    """Whether nobody wrote a sampler of their own, which may go in any order on purpose."""
    batches = batch_sampler(loader)
    if batches is not None and type(batches) is not BatchSampler:
        return False
    known = (SequentialSampler, RandomSampler, DistributedSampler, list, tuple, range)
    sampler = row_sampler(loader)
    return isinstance(sampler, known) and not isinstance(loader.dataset, torch.utils.data.IterableDataset)


def is_shuffled_stream(dataset: Any) -> bool:
    """Whether it is a stream that somebody wants in another order each epoch."""
    if not isinstance(dataset, torch.utils.data.IterableDataset):
        return False
    examples = getattr(dataset, "_ex_iterable", None)
    if examples is None:
        return hasattr(dataset, "set_epoch")
    while examples is not None:  # a stream of datasets
        if "Shuffled" in type(examples).__name__:
            return True
        examples = getattr(examples, "ex_iterable", None)
    return False
