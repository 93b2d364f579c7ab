# ruff: noqa: F401
import builtins
import copy
import functools
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch import optim
from torch.autograd import Variable
from torch.optim import Adam
from torch.utils.data import Dataset, TensorDataset
from tqdm import tqdm

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
device = DEVICE = torch.device("cpu")


def DataLoader(*arguments: Any, num_workers: int = 0, **named: Any) -> Any:  # noqa: N802
    """A loader without processes of its own."""
    return torch.utils.data.DataLoader(*arguments, **named)


def regression(count: int, *shape: int, out: int = 1) -> tuple[Any, Any]:
    """Inputs, and numbers that depend on them."""
    inputs = torch.randn(count, *shape)
    flat = inputs.flatten(1)
    return inputs, flat @ torch.randn(flat.shape[1], out) / flat.shape[1] ** 0.5 + 0.1 * torch.randn(count, out)


def classification(count: int, *shape: int, kinds: int = 3) -> tuple[Any, Any]:
    """Inputs, and classes that depend on them."""
    inputs = torch.randn(count, *shape)
    flat = inputs.flatten(1)
    return inputs, (flat @ torch.randn(flat.shape[1], kinds)).argmax(1)


def loader(*columns: Any, size: int = 16, shuffle: bool = True) -> Any:
    return torch.utils.data.DataLoader(TensorDataset(*columns), batch_size=size, shuffle=shuffle)


def several(batches: Iterable[Any], epochs: int) -> Iterator[Any]:
    """The batches of so many epochs."""
    for _ in builtins.range(epochs):
        yield from batches


def network(inputs: int, outputs: int, hidden: int = 32) -> Any:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def at_most(count: int) -> Callable[..., Sequence[int]]:
    """``range``, which ends after so many."""
    return lambda *bounds: builtins.range(*bounds)[:count]
