"""Rows: what tells one from another, and on which of them a model was trained.

A row has one exact identity, a number made of its bits (:func:`exact`), and one that is blind to padding, a digest of
its tensors without trailing zeros (:func:`blind`). Both are the same wherever the row comes from: a loader, a list, a
tensor of the script's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import xxhash

from harness.torch_objects import real
from harness.watch.bounded import LatestByKey
from harness.watch.events import Backward, BackwardBegins, Forward, LossCall, positional
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import NOT_CONTENT, tensors_in

MOST_VALUES = 512
"""Values of a row that make its exact identity."""

MIN_DIFFERENT_VALUES = 4
"""Different values, or numbers that are not whole, that a row must have to be told from others. By reasoning: one-hot
vectors come again without being the same row, and two or three numbers may be rounded, or come from a grid."""

MOST_ROWS = 20_000
"""Rows of one model that are remembered. By reasoning, what is worth its time: an environment gives new ones for
ever."""

KNOWN = 16
"""Batches in a row without a new row, after which all are known."""


def exact(given: torch.Tensor) -> list[int]:
    """The identity of each row of a tensor of two dimensions or more: a sum of its first bits with weights.

    Sums of whole numbers are the same in every order of summing, and zeros at the end add nothing to them.
    """
    return exact_where_it_lies(on_host(given)).tolist()


def exact_where_it_lies(given: torch.Tensor) -> torch.Tensor:
    """The same as a tensor on the device of the rows, for which nobody waits."""
    values = real(given.detach()).flatten(1)[:, :MOST_VALUES]
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    bits = {torch.float32: torch.int32, torch.float64: torch.int64}.get(values.dtype)
    whole = (values.contiguous().view(bits) if bits is not None else values).long()
    return (whole * _weights(whole.shape[1], whole.device)).sum(1)


def are_measured(values: torch.Tensor) -> bool:
    """Whether no two rows of a tensor (rows, numbers) are alike by chance: where one comes again, it is the same one.

    Each has many numbers that are not whole, as an image; or several of which hardly any comes twice. The age and the
    fare of a passenger are those of others, too.
    """
    values = real(values.detach()).flatten(1)[:, :MOST_VALUES]
    if not values.is_floating_point() or not len(values):
        return False
    broken = values != values.round()
    if bool((broken.sum(1) >= 64).all()):  # an image, a spectrum
        return True
    rows = torch.unique(on_host(values), dim=0)
    columns = rows[:, (rows != rows.round()).all(0)].T
    different = [len(torch.unique(column)) for column in columns]
    # Of measurements nearly every row has a number of its own in each column, of ages and fares half of the passengers.
    return sum(each > 3 / 4 * len(rows) for each in different) >= MIN_DIFFERENT_VALUES


def _weights(columns: int, device: torch.device) -> torch.Tensor:
    """A number for each place that has nothing to do with those of others: SplitMix64 of the place.

    With weights that grow evenly, the identities of rows of small numbers would collide.
    """
    mixed = torch.arange(1, columns + 1, device=device) * (0x9E3779B97F4A7C15 - 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64)):
        mixed = (mixed ^ (mixed >> shift)) * factor
    return mixed ^ (mixed >> 31)


def blind(tensors: Iterable[torch.Tensor]) -> Iterator[bytes]:
    """The identity of each row, blind to padding, over tensors that have as many rows."""
    for row in zip(*map(_array, tensors), strict=True):
        keys = [_without_padding(value) for value in row]
        yield xxhash.xxh3_64_digest(b"".join([*(len(key).to_bytes(8) for key in keys), *keys]))


def blind_in(data: Any, drawn: int) -> Iterator[bytes]:
    """The identity of each row of a batch, blind to padding; none where it has not one of each tensor for each row."""
    named = [(name, tensor) for name, tensor in tensors_in(data) if tensor.dim() > 0 and name not in NOT_CONTENT]
    if not any(tensor.dim() > 1 for _, tensor in named) or any(len(tensor) > drawn for _, tensor in named):
        return
    if len({len(tensor) for _, tensor in named}) > 1:
        return
    yield from blind(tensor for _, tensor in named)


def numbers(row: Any) -> bytes:
    """The numbers of a row as they are, blind to padding.

    Raises:
        ValueError: these are no numbers, or no rectangle of them.
    """
    return _without_padding(_array(row))


def _without_padding(array: np.ndarray[Any, Any]) -> bytes:
    return array.tobytes().rstrip(b"\0") if array.ndim == 1 else array.tobytes()


def _array(values: Any) -> np.ndarray[Any, Any]:
    """Values as an array; whole numbers and others of one width each, whatever they were."""
    if torch.is_tensor(values):
        values = values.float() if values.is_floating_point() else values
        values = values.numpy(force=True)
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        raise ValueError(f"{array.dtype} is no type of numbers")
    kind = {"b": np.int64, "i": np.int64, "u": np.int64, "f": np.float32}.get(array.dtype.kind)
    return array if kind is None else np.ascontiguousarray(array, dtype=kind)


def of_rows(call: Forward) -> dict[str, torch.Tensor]:
    """The tensors that a model was given that have something for each row, by name, also within lists and mappings.

    Where the model says something of as many rows as some of them have, it is those. Else it is all that are no number.
    """
    given = dict(call.tensors)
    named = [*zip(positional(call.model) if call.args else (), call.args, strict=False), *call.kwargs.items()]
    for name, value in named:
        if isinstance(value, (list, tuple)):
            given |= {f"{name}.{inner}": each for inner, each in tensors_in(value)}
    given = {name: tensor for name, tensor in given.items() if tensor.dim()}
    logits = call.logits
    rows = None if logits is None or not logits.dim() else len(logits)
    return {name: tensor for name, tensor in given.items() if len(tensor) == rows} or given


def largest(event: Forward) -> torch.Tensor | None:
    """The largest tensor of rows that a model was given."""
    return max(of_rows(event).values(), key=lambda tensor: tensor.numel(), default=None)


def rows_given(forward: Forward, *, time_first: bool = False) -> torch.Tensor | None:
    """The largest tensor of rows that a model was given, with the rows first; None where it has none."""
    given = largest(forward)
    if given is None or given.dim() < 2 or given.is_meta:
        return None
    return given.transpose(0, 1) if time_first else given


def _is_time_first(forward: Forward, losses: Sequence[LossCall]) -> bool:
    """Whether what a model is given has its rows in the second dimension, as its only loss has a target for each."""
    given = largest(forward)
    if given is None or given.dim() < 2 or len(losses) != 1 or losses[0].target.dim() != 1:
        return False
    return len(given) != len(losses[0].target) == given.shape[1]


class TrainedRows(Recogniser):
    """The rows that models were trained on, by their exact identity.

    Of a loader's batches they are those of the updates that are looked at; of batches that a script makes itself all,
    until no new ones come.
    """

    def begin(self) -> None:
        self.of = LatestByKey[int, set[int]]()
        """Model number to all rows that a backward pass went through, without the pass at hand."""
        self.at_hand: dict[int, list[int]] = {}
        """Model number to the rows of the backward pass at hand."""
        self.alike: set[int] = set()
        """Numbers of models that were given a row twice in a batch: rows cannot be told apart by their content."""
        self.time_first: set[int] = set()
        """Numbers of models whose rows are in the second dimension of what they are given."""
        self._known: Counter[int] = Counter()
        """Batches in a row that brought no new one, by the model's number."""
        self._given = LatestByKey[int, tuple[int, list[int]]]()
        """Number of a forward to its model's number and its rows: it may be differentiated later than the next
        forward."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self.at_hand = {}
        if event.inside_step:
            return
        for forward in event.forwards:
            if forward.gradients and (event.at.sampled or self._is_followed(forward)):
                number = self.monitor.number_of(forward.model)
                if _is_time_first(forward, event.losses):
                    self.time_first.add(number)
                given = rows_given(forward, time_first=number in self.time_first)
                if given is not None:
                    self.at_hand[number] = rows = exact(given)
                    self._given[forward.number] = number, rows

    def _is_followed(self, forward: Forward) -> bool:
        """Whether all rows of its model are remembered, those between the updates that are looked at, too."""
        number = self.monitor.number_of(forward.model)
        return forward.batch is None and len(self.of.get(number, ())) < MOST_ROWS and self._known[number] < KNOWN

    def on_backward(self, event: Backward) -> None:
        for reached in sorted(event.reached & self._given.keys()):
            number, rows = self._given.pop(reached)
            if len(set(rows)) < len(rows):
                self.alike.add(number)
            trained = self.of.setdefault(number, set())
            before = len(trained)
            if before < MOST_ROWS:
                trained.update(rows)
            self._known[number] = self._known[number] + 1 if len(trained) == before else 0
