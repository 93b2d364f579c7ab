"""Counted batches: what a batch of an evaluation comes to, in tensors that stay on their device until they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional

from harness.watch.events import IGNORED
from harness.watch.facts.formulas import Confusion, Part
from harness.watch.host import brought

MOST_CLASSES = 20
"""Classes up to which it is counted which were taken for which."""

MOST_SCORES = 1000
"""Classes of a token up to which the likeliest is looked for: a vocabulary has more."""


@dataclass(eq=False)
class Pairs:
    """Classes that were taken, beside the true ones."""

    hits: torch.Tensor
    targets: torch.Tensor
    confusion: torch.Tensor | None
    known: torch.Tensor | None
    """Whether all true classes are among those of the confusion."""

    def tensors(self) -> Iterator[torch.Tensor]:
        yield from (each for each in (self.hits, self.targets, self.confusion, self.known) if each is not None)


@dataclass(eq=False)
class Classes:
    """A batch as one of classes."""

    pairs: Pairs
    places: int
    among_five: torch.Tensor | None = None
    otherwise: Mapping[str, Pairs] = field(default_factory=dict)
    """Where classes are taken by mistake in another way."""


@dataclass(eq=False)
class Differences:
    """A batch as one of a regression: sums."""

    numbers: int
    squares: torch.Tensor
    absolutes: torch.Tensor
    totals: tuple[torch.Tensor, ...]
    """Sums of the targets, their squares, what the model says and its squares."""


@dataclass(eq=False)
class Way:
    """One way in which a batch may be counted; which it is, its numbers say."""

    of: Classes | Differences
    if_true: torch.Tensor | None = None
    """Whether it is this one; None of the last that is left."""

    def tensors(self) -> Iterator[torch.Tensor]:
        yield from () if self.if_true is None else (self.if_true,)
        if isinstance(self.of, Differences):
            yield from (self.of.squares, self.of.absolutes, *self.of.totals)
            return
        for pairs in (self.of.pairs, *self.of.otherwise.values()):
            yield from pairs.tensors()
        yield from () if self.of.among_five is None else (self.of.among_five,)


@dataclass(eq=False)
class CountedBatch:
    """A batch of an evaluation. Nobody waits for a GPU until it is read."""

    targets: Any = 0
    places: int = 0
    agrees: tuple[Any, int] | None = None
    """Where tensors that the script compared are equal, of how many numbers."""
    loss: torch.Tensor | None = None
    ways: list[Way] = field(default_factory=list)
    """The first that is true is how it is counted."""

    def count(self, logits: torch.Tensor | None, labels: torch.Tensor, loss: torch.Tensor | None = None) -> None:
        """Count it by its labels, where they fit what the model says."""
        if logits is not None and labels.dim():
            self.ways = list(_ways(logits.detach(), labels.to(logits.device), loss))

    def tensors(self) -> Iterator[torch.Tensor]:
        """All that is to be read."""
        agrees = None if self.agrees is None else self.agrees[0]
        yield from (each for each in (self.targets, agrees, self.loss) if isinstance(each, torch.Tensor))
        for way in self.ways:
            yield from way.tensors()


def _ways(logits: torch.Tensor, labels: torch.Tensor, loss: torch.Tensor | None) -> Iterator[Way]:
    if logits.dim() == labels.dim() + 1 > 3 and logits.shape[2:] == labels.shape[1:] and len(logits) == len(labels):
        logits = logits.movedim(1, -1)  # classes of each pixel
    if labels.is_floating_point() and logits.numel() == labels.numel():
        yield Way(_differences(logits, labels), ~((labels == 0) | (labels == 1)).all())
    classes = logits.shape[-1] if logits.dim() > labels.dim() else 1
    if logits.shape[: labels.dim()] != labels.shape and logits.numel() != labels.numel():
        return
    true = labels.long()
    if classes > 1 and logits.shape[:-1] == labels.shape and (labels.dim() == 1 or classes <= MOST_SCORES):
        yield from _of_likeliest(logits, true, loss)
    elif logits.numel() == labels.numel():
        flat = logits.reshape(labels.shape)
        half = Classes(_pairs((flat > 0.5).long(), true, 2), labels.numel())
        yield Way(half, ((flat >= 0) & (flat <= 1)).all())  # they are probabilities
        otherwise = {"threshold-of-probabilities": half.pairs}
        yield Way(Classes(_pairs((flat > 0.0).long(), true, 2), labels.numel(), otherwise=otherwise))


def _differences(logits: torch.Tensor, labels: torch.Tensor) -> Differences:
    true, given = labels.double(), logits.double()
    difference = given.reshape(-1) - true.reshape(-1)
    totals = true.sum(), true.square().sum(), given.sum(), given.square().sum()
    return Differences(labels.numel(), difference.square().sum(), difference.abs().sum(), totals)


def _of_likeliest(logits: torch.Tensor, true: torch.Tensor, loss: torch.Tensor | None) -> Iterator[Way]:
    classes, taken, otherwise = logits.shape[-1], logits.argmax(-1), dict[str, Pairs]()
    if true.dim() == 2 and logits.shape[1] == logits.shape[2]:
        otherwise["wrong-axis"] = _pairs(logits.argmax(1), true, classes)
    own = _pairs(taken, true, classes)
    if true.dim() == 2 and loss is not None and not loss.dim() and true.shape[1] > 1:
        of_next = {
            **otherwise,
            "own-place": own,
            "own-place-but-first": _pairs(taken[:, 1:], true[:, 1:], classes),
        }
        ahead = Classes(_pairs(taken[:, :-1], true[:, 1:], classes), true.numel(), otherwise=of_next)
        yield Way(ahead, _is_of_next(logits, true, loss))
    among_five = None
    if true.dim() == 1 and 5 < classes <= MOST_SCORES:
        among_five = ((logits.topk(5, -1).indices == true[:, None]).any(1) & (true != IGNORED)).sum()
    yield Way(Classes(own, true.numel(), among_five, otherwise))


def _pairs(taken: torch.Tensor, true: torch.Tensor, classes: int) -> Pairs:
    """How many are right, of how many, and of few classes which were taken for which."""
    counts = true != IGNORED
    hits, targets = ((taken == true) & counts).sum(), counts.sum()
    if classes > MOST_CLASSES:
        return Pairs(hits, targets, None, None)
    known = (true >= 0) & (true < classes)
    return Pairs(hits, targets, confusion_of(taken, true, known, classes), (known | ~counts).all())


def confusion_of(taken: torch.Tensor, true: torch.Tensor, known: torch.Tensor, classes: int) -> torch.Tensor:
    """(classes, classes): how often each true class was taken for each, where it is known.

    A GPU counts by products of ones, since its ``bincount`` waits for the largest number.
    """
    if true.device.type == "cpu":
        pairs = true[known] * classes + taken[known]
        return torch.bincount(pairs.reshape(-1), minlength=classes**2).reshape(classes, classes)
    return products_of_ones(taken, true, known, classes)


def products_of_ones(
    taken: torch.Tensor, true: torch.Tensor, known: torch.Tensor, classes: int, rows: int = 65536
) -> torch.Tensor:
    """The same without a number that the CPU must know; of so many ``rows`` at once that they take a few megabytes."""
    every, found = torch.arange(classes, device=true.device), torch.zeros(classes, classes, device=true.device)
    one, other = torch.where(known, true, -1).reshape(-1), taken.reshape(-1)
    with torch.autocast(true.device.type, enabled=False):  # which would count up to 2048
        for start in range(0, len(one), rows):
            ones, others = (each[start : start + rows, None] == every for each in (one, other))
            found = found + ones.float().T @ others.float()
    return found.long()


def _is_of_next(logits: torch.Tensor, true: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
    """Whether the loss of a model is that of the next labels, as a language model's is."""
    fit = ((true >= 0) & (true < logits.shape[-1])) | (true == IGNORED)
    scores, labels = logits.float(), torch.where(fit, true, IGNORED)
    at, ahead = (
        functional.cross_entropy(one.reshape(-1, one.shape[-1]), other.reshape(-1))
        for one, other in ((scores, labels), (scores[:, :-1], labels[:, 1:]))
    )
    loss = loss.to(ahead.device)
    return fit.all() & ((ahead - loss).abs() < (at - loss).abs())


def read(batches: Sequence[CountedBatch]) -> list[Part]:
    """What batches came to."""
    tensors = [each for batch in batches for each in batch.tensors()]
    values = dict(zip(map(id, tensors), brought(tensors), strict=True))
    return [_part(batch, values) for batch in batches]


def _part(batch: CountedBatch, values: Mapping[int, torch.Tensor]) -> Part:
    def number(of: Any) -> Any:
        return values[id(of)].item() if isinstance(of, torch.Tensor) else of

    def confusion(of: Pairs) -> Confusion | None:
        return None if of.confusion is None or not number(of.known) else values[id(of.confusion)].numpy()

    agrees = None if batch.agrees is None else (int(number(batch.agrees[0])), batch.agrees[1])
    loss = None if batch.loss is None else float(number(batch.loss))
    way = next((each.of for each in batch.ways if each.if_true is None or number(each.if_true)), None)
    if way is None:
        return Part(int(number(batch.targets)), batch.places, agrees=agrees, loss=loss)
    if isinstance(way, Differences):
        true, true_squares, predicted, predicted_squares = map(number, way.totals)
        return Part(
            way.numbers,
            way.numbers,
            agrees=agrees,
            loss=loss,
            squares=number(way.squares),
            absolutes=number(way.absolutes),
            totals=(true, true_squares),
            predicted=(predicted, predicted_squares),
        )
    return Part(
        number(way.pairs.targets),
        way.places,
        number(way.pairs.hits),
        number(way.among_five),
        agrees,
        loss,
        confusion=confusion(way.pairs),
        otherwise={how: (number(of.hits), number(of.targets), confusion(of)) for how, of in way.otherwise.items()},
    )
