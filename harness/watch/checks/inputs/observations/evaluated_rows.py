"""Evaluated rows: their tokens, beside those of training, and the moments of their columns after one update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from harness.watch.events import Backward, End, Fact, Forward
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.evaluations import ScoredCall
from harness.watch.run.rows import TrainedRows, exact

MOST_IDS = 1_000_000

MIN_LENGTH = 4
"""Tokens of a row that are a text: ids of users or products come alone."""

Input = tuple[int, str]
"""The number of a model, and the name of one of its parameters."""

MIN_COLUMNS, MOST_COLUMNS = 2, 4096


class TokensEvaluated(Fact):
    """A run is over in which a model was scored on texts. ``where`` it was called first."""

    needs = "evaluation of texts whose tokens a model has embeddings of"
    of_run = True
    trained: int
    """Tokens of training, in the updates that were looked at."""
    evaluated: int
    """Tokens of evaluations, but for padding."""
    token: int = 0
    """The most frequent of the evaluations that training never had."""
    times: int = 0
    """It is in the evaluations."""
    update: int = 0
    """After which it was evaluated first."""


class KnownTokens(Recogniser):
    makes = (TokensEvaluated,)

    def begin(self) -> None:
        self._trained: dict[Input, torch.Tensor] = {}
        """How often each token was in training, in the updates that were looked at."""
        self._evaluated: dict[Input, Counter[int]] = {}
        self._where: dict[Input, tuple[str | None, int]] = {}
        self._latest = 0

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not event.at.sampled:
            return
        for forward in event.forwards:
            if forward.number in event.reached:
                for key, tensor in self._texts(forward):
                    counts = torch.bincount(tensor.flatten())
                    before = self._trained.get(key, counts[:0])
                    size = max(len(before), len(counts))
                    self._trained[key] = _padded(before, size) + _padded(counts, size)

    def on_scored(self, fact: ScoredCall) -> None:
        scored = fact.forward
        if not self._trained or scored.number == self._latest:
            return
        self._latest = scored.number
        for key, tensor in self._texts(scored):
            if key not in self._trained:
                continue
            padding = (tensor == tensor[:, -1:]).flip(1).cumprod(1).flip(1).bool()
            self._evaluated.setdefault(key, Counter()).update(tensor[~padding].tolist())
            self._where.setdefault(key, (scored.where, self.monitor.updates_made))

    def _texts(self, forward: Forward) -> list[tuple[Input, torch.Tensor]]:
        found = []
        for name, tensor in forward.tensors.items():
            whole = tensor.dtype in (torch.int64, torch.int32) and not tensor.is_meta
            if not whole or tensor.dim() != 2 or tensor.shape[1] < MIN_LENGTH or not len(tensor):
                continue
            if name == "labels" or "mask" in name or "type" in name or "position" in name:
                continue
            ids = on_host(tensor).cpu().long()
            largest = int(ids.max())
            sizes = [each.num_embeddings for each in forward.model.modules() if isinstance(each, nn.Embedding)]
            if int(ids.min()) >= 0 and largest < MOST_IDS and any(largest < size for size in sizes):
                found.append(((self.monitor.number_of(forward.model), name), ids))
        return found

    def on_end(self, event: End) -> None:
        for key, counts in self._evaluated.items():
            trained, (where, update) = self._trained[key], self._where[key]
            unseen = {each: n for each, n in counts.items() if each >= len(trained) or trained[each] == 0}
            token, times = max(unseen.items(), key=lambda each: each[1], default=(0, 0))
            self.tell(
                TokensEvaluated(
                    trained=int(trained.sum()),
                    evaluated=counts.total(),
                    token=token,
                    times=times,
                    update=update,
                    where=where,
                )
            )


def _padded(counts: torch.Tensor, size: int) -> torch.Tensor:
    return torch.nn.functional.pad(counts, (0, size - len(counts)))


@dataclass(eq=False)
class Moments:
    """Moments by column of the rows that a model was given between two updates."""

    where: str | None
    total: torch.Tensor
    squares: torch.Tensor
    rows: int = 0
    trained: bool = False
    """Whether some of them were trained on: those are right to have these moments."""
    latest: int = 0
    """The number of the latest forward."""


class MomentsEvaluated(Fact):
    """What was evaluated after one update is over, and a model was trained on rows of numbers before."""

    needs = "evaluation of columns of numbers"
    of_run = True
    inputs: Sequence[Moments]
    """Moments by model, and by what the rows are of."""
    update: int = 0


class EvaluatedMoments(Recogniser):
    makes = (MomentsEvaluated,)

    def begin(self) -> None:
        self._rows = self.fact(TrainedRows)
        self._evaluated: dict[tuple[int, int], Moments] = {}
        """Moments since the latest update by the model, and by the pass or the tensor that the rows are of."""
        self._update = 0
        """The updates made by then."""

    def on_forward(self, scored: Forward) -> None:
        columns = _columns(scored)
        number = self.monitor.number_of(scored.model)
        trained = list(self._rows.of.values())
        if scored.gradients or columns is None or not trained:
            return
        of = columns if columns._base is None else columns._base
        rows_of = id(of) if scored.batch is None else id(scored.batch.of)
        if scored.at.updates_made > self._update:
            self._close()
            self._update = scored.at.updates_made
        key = number, rows_of
        zeros = torch.zeros(columns.shape[1], dtype=torch.float64, device="cpu")
        moments = self._evaluated.setdefault(key, Moments(scored.where, zeros, zeros))
        if scored.number == moments.latest or moments.trained or moments.total.shape != zeros.shape:
            return
        moments.latest = scored.number
        moments.trained = not all(map(frozenset(exact(columns)).isdisjoint, trained))
        values = on_host(columns).cpu().double()
        moments.total = moments.total + values.sum(0)
        moments.squares = moments.squares + values.square().sum(0)
        moments.rows += len(values)

    def on_end(self, event: End) -> None:
        self._close()

    def _close(self) -> None:
        """Tell what was evaluated after one update, and let it go."""
        evaluated, self._evaluated = self._evaluated, {}
        if evaluated:
            self.tell(MomentsEvaluated(inputs=list(evaluated.values()), update=self._update))


def _columns(forward: Forward) -> torch.Tensor | None:
    """(rows, columns) of numbers that a model was given alone."""
    given = [tensor for tensor in forward.tensors.values() if tensor.dim()]
    if len(given) != 1 or given[0].dim() != 2 or not given[0].is_floating_point() or given[0].is_meta:
        return None
    return given[0] if MIN_COLUMNS <= given[0].shape[1] <= MOST_COLUMNS else None
