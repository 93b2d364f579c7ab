from __future__ import annotations

from collections import Counter

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, MetricCall, Scored
from harness.watch.monitor import Monitor

MIN_TRAINED = 2000
"""Tokens of training that show what the model knows. Neither half nor double of it changes a verdict of the corpus."""

MIN_EVALUATED = 200
"""Tokens of an evaluation. Neither half nor double of it changes a verdict of the corpus."""

MIN_SHARE = 0.1
"""Smallest share of an evaluation's tokens that one number must have which training never had. New words are many
different ones. Neither half nor double of it changes a verdict of the corpus."""

MOST_IDS = 1_000_000
MIN_LENGTH = 4
"""Tokens of a row that are a text: ids of users or products come alone. Neither half nor double of it changes a verdict
of the corpus."""

Input = tuple[int, str]
"""The number of a model, and the name of one of its parameters."""


class EvaluatedOnUnknownTokens(Check):
    """In evaluation the texts are full of one token that training never had: words are looked up in another form.

    ## Why is this a bug?
    If the training texts are lower-cased, stripped or split in a way that the evaluation texts are not, words of the
    evaluation are no longer in the vocabulary, and all of them become the unknown token, whose embedding was never
    trained.

    ## What to do
    Put what is done to a text before its words are looked up into one function, and use it for all texts.

    ## When it is right
    Padding at the ends of rows, and tokens that occurred in training at any time, are not reported. Neither are new
    words that have ids of their own.
    """

    status = "new"
    needs = "evaluation of texts whose tokens a model has embeddings of"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained: dict[Input, torch.Tensor] = {}
        """How often each token was in training, in the updates that were looked at."""
        self.evaluated: dict[Input, Counter[int]] = {}
        self.where: dict[Input, tuple[str | None, int]] = {}
        self.latest = 0

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not self.monitor.is_sampled():
            return
        for forward in event.forwards:
            if forward.number in event.reached:
                for key, tensor in self._texts(forward):
                    counts = torch.bincount(tensor.flatten())
                    before = self.trained.get(key, counts[:0])
                    size = max(len(before), len(counts))
                    self.trained[key] = _padded(before, size) + _padded(counts, size)

    def on_forward(self, event: Forward) -> None:
        if event.loss is not None:
            self._score(event)

    def on_scored(self, event: Scored) -> None:
        self._score(event.forward)

    def on_metric(self, event: MetricCall) -> None:
        for forward in self.monitor.forwards[-1:]:
            self._score(forward)

    def _score(self, scored: Forward) -> None:
        if scored.gradients or not self.trained or scored.number == self.latest:
            return
        self.latest = scored.number
        for key, tensor in self._texts(scored):
            if key not in self.trained:
                continue
            self.looked = True
            padding = (tensor == tensor[:, -1:]).flip(1).cumprod(1).flip(1).bool()
            self.evaluated.setdefault(key, Counter()).update(tensor[~padding].tolist())
            self.where.setdefault(key, (scored.where, self.monitor.updates_made))

    def _texts(self, forward: Forward) -> list[tuple[Input, torch.Tensor]]:
        found = []
        for name, tensor in forward.tensors.items():
            whole = tensor.dtype in (torch.int64, torch.int32) and not tensor.is_meta
            if not whole or tensor.dim() != 2 or tensor.shape[1] < MIN_LENGTH or not len(tensor):
                continue
            if name == "labels" or "mask" in name or "type" in name or "position" in name:
                continue
            ids = tensor.detach().cpu().long()
            largest = int(ids.max())
            sizes = [each.num_embeddings for each in forward.model.modules() if isinstance(each, nn.Embedding)]
            if int(ids.min()) >= 0 and largest < MOST_IDS and any(largest < size for size in sizes):
                found.append(((self.monitor.number_of(forward.model), name), ids))
        return found

    def on_end(self, event: End) -> None:
        for key, counts in self.evaluated.items():
            trained, total = self.trained[key], counts.total()
            if int(trained.sum()) < MIN_TRAINED or total < MIN_EVALUATED:
                continue
            unseen = {each: n for each, n in counts.items() if each >= len(trained) or trained[each] == 0}
            token, times = max(unseen.items(), key=lambda each: each[1], default=(0, 0))
            if times >= MIN_SHARE * total:
                where, update = self.where[key]
                self.found(
                    expected="texts of tokens that training had, too",
                    observed=f"{times} of {total} tokens of the evaluation are {token}, which none of the "
                    f"{int(trained.sum())} of training is: it stands for unknown words, in texts that were not "
                    "lower-cased, stripped or split as those of training were",
                    where=where,
                    update=update,
                )


def _padded(counts: torch.Tensor, size: int) -> torch.Tensor:
    return torch.nn.functional.pad(counts, (0, size - len(counts)))
