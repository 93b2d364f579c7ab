"""Memory: of a dataset in a process of its own, and of what a forward pass keeps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from datasets import Dataset

READER = Path(__file__).with_name("reader.py")

ROW_LENGTH = 128
ROWS = 65_536
"""64 MiB of rows of 128 int64: large beside what opening a dataset takes by itself."""

PATIENCE = 120
"""Seconds until a reader counts as hung."""


def corpus(rows: int) -> Dataset:
    """A dataset of ``rows`` rows with one column of ``ROW_LENGTH`` int64."""
    numbers = np.arange(rows * ROW_LENGTH, dtype=np.int64)
    return Dataset.from_dict({"input_ids": numbers.reshape(rows, ROW_LENGTH)})


class Readers:
    """Two processes that read a corpus, one as datasets does by default and one that keeps it in memory."""

    def __init__(self, folder: str) -> None:
        large, small = (str(Path(folder, name)) for name in ("large", "small"))
        whole = corpus(ROWS)
        self.corpus = int(whole.data.nbytes)
        whole.save_to_disk(large)
        corpus(ROW_LENGTH).save_to_disk(small)
        self.processes = {
            how: subprocess.Popen(  # noqa: S603 - this file's neighbour
                [sys.executable, "-P", str(READER), large, small, how],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for how in ("mapped", "in memory")
        }

    def resident(self) -> dict[str, int]:
        """Growth of the memory of each process, in bytes.

        Raises:
            RuntimeError: one of them failed; with its last line.
            subprocess.TimeoutExpired: one of them hung.
        """
        grown = {}
        for how, process in self.processes.items():
            says, error = process.communicate(timeout=PATIENCE)
            if process.returncode:
                raise RuntimeError(f"reading it {how} failed: {(error.strip() or 'without a word').splitlines()[-1]}")
            grown[how] = int(says)
        return grown

    def end(self) -> None:
        """End what still runs."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.communicate()


@contextmanager
def readers() -> Iterator[Readers]:
    """Readers at work; nothing of them is left behind."""
    with TemporaryDirectory(prefix="harness-corpus-") as folder:
        at_work = Readers(folder)
        try:
            yield at_work
        finally:
            at_work.end()


def kept(model: torch.nn.Module, batch: dict[str, torch.Tensor], gradients: AbstractContextManager[Any]) -> int:
    """The bytes that a forward pass keeps for a backward pass, parameters and the batch itself not counted."""
    there_already = {tensor.untyped_storage().data_ptr() for tensor in (*model.state_dict().values(), *batch.values())}
    sizes: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in there_already:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    training = model.training
    model.eval()
    try:
        with gradients, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            outputs = model(**batch)  # alive with its graph, so that no storage is used twice
            del outputs
    finally:
        model.train(training)
    return sum(sizes.values())
