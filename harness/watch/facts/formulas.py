"""Formulas: what an evaluation comes to over all of its rows, and what it comes to by the mistakes that people make."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.watch.facts.formula import STREAMS, Formula, formula

Confusion = npt.NDArray[np.int64]
"""(classes, classes): how many targets of each class, in rows, were taken for each, in columns."""

Group = Literal["rows", "batches", "name", "taken"]
"""What is wrong with a formula: the rows that it counts, that batches count alike, what its value is called, or how
classes are taken from what the model says."""

RATES = ("accuracy", "error rate", "precision", "recall", "f1", "iou")
"""Kinds of values between 0 and 1, which may be given in per cent."""

BEFORE = formula("evaluation-before")


@dataclass(frozen=True)
class Part:
    """What one batch of an evaluation comes to."""

    targets: int
    """Labels that count: those of rows, or of tokens that are not ignored."""
    places: int
    """All labels, the ignored ones too."""
    hits: int | None = None
    """Targets for which the model says the right class."""
    among_five: int | None = None
    """Targets whose class is one of the five likeliest, where there are more."""
    agrees: tuple[int, int] | None = None
    """Where tensors that the script compared are equal, of how many numbers."""
    loss: float | None = None
    """The mean over the targets."""
    squares: float | None = None
    """Of the differences between what a regression says and its targets, the sum."""
    absolutes: float = 0.0
    totals: tuple[float, float] = (0.0, 0.0)
    """Of a regression's targets and of their squares, the sums."""
    said: tuple[float, float] = (0.0, 0.0)
    """The same of what it says."""
    confusion: Confusion | None = None
    otherwise: Mapping[str, tuple[int, int, Confusion | None]] = field(default_factory=dict)
    """Hits, targets and confusion where classes are taken by mistake in another way, by how
    (:data:`harness.watch.facts.formula.OTHERWISE`)."""


def part_of(taken: Sequence[int], true: Sequence[int]) -> Part:
    """A batch of which the classes are known that were taken and that are true; as many as both sequences have."""
    rows = min(len(taken), len(true))
    pairs = np.array([true[:rows], taken[:rows]], dtype=np.int64).reshape(2, -1)
    classes = int(pairs.max(initial=1)) + 1
    confusion = np.bincount(pairs[0] * classes + pairs[1], minlength=classes**2).reshape(classes, classes)
    return Part(rows, rows, int((pairs[0] == pairs[1]).sum()), confusion=confusion.astype(np.int64))


def total(parts: Sequence[Part]) -> Part:
    """Several batches as one."""
    counted, among_five, agreed = (_counted(parts, stream) for stream in STREAMS)
    targets = sum(each.targets for each in parts)
    losses = [each.loss * each.targets for each in parts if each.loss is not None]
    squares = [each.squares for each in parts if each.squares is not None]
    first, second, said, said_second = (
        (sum(values) for values in zip(*((*each.totals, *each.said) for each in parts), strict=True))
        if parts
        else (0.0,) * 4
    )
    return Part(
        targets,
        sum(each.places for each in parts),
        sum(hits for hits, _ in counted) if counted else None,
        sum(hits for hits, _ in among_five) if among_five else None,
        (sum(hits for hits, _ in agreed), sum(of for _, of in agreed)) if agreed else None,
        sum(losses) / targets if targets and len(losses) == len(parts) else None,
        sum(squares) if squares and len(squares) == len(parts) else None,
        sum(each.absolutes for each in parts),
        (first, second),
        (said, said_second),
        _confusion(parts),
    )


@dataclass
class Tally:
    """One evaluation."""

    parts: list[Part]
    size: int | None = None
    """Rows of a whole batch."""
    rows: int | None = None
    """Rows of the dataset."""
    judged: bool = True
    """Whether it is known to be over and of all its rows, so that a mistake could be told."""
    earlier: list[Tally] = field(default_factory=list)
    """The evaluations of the same rows before it, the latest last."""
    divided: bool = False
    """Whether its rows are divided among processes, each of which is given as many: some come twice."""
    others: frozenset[int] = frozenset()
    """Lengths of other datasets, and numbers of their batches, by which something may be divided."""

    @property
    def compared_twice(self) -> int:
        """How many rows were compared again, of all processes, because they fill up the last batches."""
        compared = sum(of for _, of in _counted(self.parts, "agrees"))
        return compared - self.rows if self.divided and self.rows and compared > self.rows else 0

    @property
    def targets(self) -> int:
        return sum(each.targets for each in self.parts)


class Value(NamedTuple):
    """A number that an evaluation gives."""

    kind: str
    formula: Formula
    value: float
    steps: float = math.inf
    """How many values it can have: hits of ten rows are eleven."""


class Mistake(NamedTuple):
    """A number that an evaluation gives by mistake."""

    kind: str
    formula: Formula
    value: float
    group: Group
    right: float
    """What the same evaluation gives without it."""
    steps: float = math.inf
    noise: float = 0.0
    """By how much the right value varies by chance with the rows: its standard error."""


def values(tally: Tally) -> Iterator[Value]:
    """What an evaluation comes to, by every formula that is right."""
    for hits, of, stream in _hits(tally.parts):
        if stream == "agrees" and tally.compared_twice:
            continue
        yield Value("accuracy", formula("share", over=stream, hits=hits, targets=of), hits / of, of)
        yield Value("error rate", formula("errors", over=stream, errors=of - hits, targets=of), 1 - hits / of, of)
        yield Value("count", formula("number-right", over=stream), hits, of)
    yield from _of_losses(tally.parts)
    yield from _of_regression(tally.parts)
    yield from _of_classes(_confusion(tally.parts))


def mistakes(tally: Tally) -> Iterator[Mistake]:
    """What it comes to by the mistakes that people make."""
    parts = tally.parts
    for stream in ("hits", "agrees"):
        counted = _counted(parts, stream)
        if counted and all(of for _, of in counted):
            yield from _mistaken_hits(counted, tally, stream)
    if tally.compared_twice:
        hits, of = (sum(counts) for counts in zip(*_counted(parts, "agrees"), strict=True))
        twice = formula("compared-twice", hits=hits, targets=of, rows=tally.rows or 0)
        yield Mistake("accuracy", twice, hits / of, "rows", math.nan, of)
    if all(each.loss is not None for each in parts):
        yield from _mistaken_losses([(each.loss or 0.0, each.targets) for each in parts], tally)
    yield from _mistaken_names(tally)
    yield from _taken_otherwise(parts)


def _counted(parts: Sequence[Part], stream: str) -> list[tuple[int, int]]:
    """Of each batch the hits, and of how many; nothing where that is not known of all."""
    found = [each.agrees if stream == "agrees" else (getattr(each, stream), each.targets) for each in parts]
    known = [(each[0], each[1]) for each in found if each is not None and each[0] is not None]
    return known if len(known) == len(found) else []


def _hits(parts: Sequence[Part]) -> Iterator[tuple[int, int, str]]:
    for stream in STREAMS:
        counted = _counted(parts, stream)
        if of := sum(number for _, number in counted):
            yield sum(hits for hits, _ in counted), of, stream


def _mistaken_hits(counted: list[tuple[int, int]], tally: Tally, stream: str) -> Iterator[Mistake]:
    hits, of = sum(each for each, _ in counted), sum(each for _, each in counted)
    right, (last, rows) = hits / of, counted[-1]
    noise = math.sqrt(right * (1 - right) / of)

    def mistake(by: Formula, value: float, group: Group = "rows", steps: float = of) -> Mistake:
        return Mistake("accuracy", by, value, group, right, steps, noise)

    if (batches := len(counted)) > 1:
        yield mistake(formula("last-batch", hits=last, rows=rows), last / rows, steps=rows)
        without = formula("without-last-batch", hits=hits - last, targets=of - rows)
        yield mistake(without, (hits - last) / (of - rows))
        yield mistake(formula("last-batch-by-all", targets=of), last / of)
        mean = sum(one / many for one, many in counted) / batches
        yield mistake(formula("mean-of-accuracies", batches=batches), mean, "batches", math.inf)
        yield mistake(formula("accuracies-added", batches=batches), mean * batches, steps=math.inf)
        yield mistake(formula("by-batches", hits=hits, batches=batches), hits / batches)
    if tally.size and (whole := tally.size * batches) != of:
        yield mistake(formula("as-if-whole", rows=whole, batches=batches, size=tally.size), hits / whole)
    if (places := sum(each.places for each in tally.parts)) != of and stream == "hits":
        yield mistake(formula("by-all-places", places=places), hits / places)
    for other in sorted(tally.others - {of}):
        yield mistake(formula("by-another-length", length=other), hits / other)
    yield from _of_earlier(tally, stream, hits, of, mistake)


def _of_earlier(tally: Tally, stream: str, hits: int, of: int, mistake: Callable[..., Mistake]) -> Iterator[Mistake]:
    earlier = [_counted(each.parts, stream) for each in tally.earlier]
    if not all(earlier):
        return
    before = [(sum(one for one, _ in counted), sum(many for _, many in counted)) for counted in earlier]
    if before and before[-1][1]:
        yield mistake(BEFORE, before[-1][0] / before[-1][1])
    all_hits, all_of = hits + sum(each for each, _ in before), of + sum(each for _, each in before)
    together = formula("all-evaluations", evaluations=len(before) + 1)
    yield mistake(together, all_hits / all_of, steps=all_of)
    yield mistake(formula("all-evaluations-by-one", evaluations=len(before) + 1), all_hits / of)


def _of_losses(parts: Sequence[Part]) -> Iterator[Value]:
    if not parts or any(each.loss is None for each in parts):
        return
    losses = [(each.loss or 0.0, each.targets) for each in parts]
    of = sum(targets for _, targets in losses)
    if not of:
        return
    total, means = sum(loss * targets for loss, targets in losses), sum(loss for loss, _ in losses)
    mean = formula("mean", targets=of)
    yield Value("loss", mean, total / of)
    yield Value("loss", formula("sum", targets=of), total)
    yield Value("loss", formula("batches-added", batches=len(losses)), means)
    yield Value("perplexity", formula("exponential", mean), exp(total / of))
    if len(losses) > 1:  # of which metrics::mean-of-means judges those that matter
        yield Value("loss", formula("mean-of-means", batches=len(losses)), means / len(losses))


def _mistaken_losses(losses: list[tuple[float, int]], tally: Tally) -> Iterator[Mistake]:
    of = sum(targets for _, targets in losses)
    if not of:
        return
    total, means = sum(loss * targets for loss, targets in losses), sum(loss for loss, _ in losses)
    right, mean, batches = total / of, means / len(losses), len(losses)
    spread = math.sqrt(sum((loss - mean) ** 2 for loss, _ in losses) / len(losses))
    noise = max(spread / math.sqrt(batches), 0.01 * abs(right))

    def mistake(by: Formula, value: float) -> Iterator[Mistake]:
        yield Mistake("loss", by, value, "rows", right, noise=noise)
        exponential = formula("exponential", by)
        yield Mistake("perplexity", exponential, exp(value), "rows", exp(right), noise=noise * exp(right))

    if batches > 1:
        perplexities = sum(exp(loss) for loss, _ in losses) / batches
        for by, value in (
            (formula("exponential", formula("mean-of-means", batches=batches)), exp(mean)),
            (formula("mean-of-perplexities", batches=batches), perplexities),
        ):
            yield Mistake("perplexity", by, value, "batches", exp(right), noise=noise * exp(right))
        yield from mistake(formula("last-batch-loss"), losses[-1][0])
        yield from mistake(formula("means-by-targets", targets=of), means / of)
        yield from mistake(formula("sum-by-batches", batches=batches), total / batches)
    for other in sorted(tally.others - {of, batches}):
        yield from mistake(formula("means-by-another-length", length=other), means / other)
        yield from mistake(formula("sum-by-another-length", length=other), total / other)
    before = [list(_of_losses(each.parts))[:1] for each in tally.earlier]
    if before and before[-1]:
        yield from mistake(BEFORE, before[-1][0].value)
    if all(before):
        every = [part for each in (*tally.earlier, tally) for part in each.parts]
        together = formula("all-evaluations", evaluations=len(before) + 1)
        yield from mistake(together, next(_of_losses(every)).value)


def _of_regression(parts: Sequence[Part]) -> Iterator[Value]:
    if not parts or any(each.squares is None for each in parts):
        return
    of = sum(each.targets for each in parts)
    if not of:
        return
    squares, absolutes = sum(each.squares or 0.0 for each in parts), sum(each.absolutes for each in parts)
    first, second = (sum(each.totals[place] for each in parts) for place in (0, 1))
    yield Value("mse", formula("mean-square", targets=of), squares / of)
    yield Value("rmse", formula("root-mean-square", targets=of), math.sqrt(squares / of))
    yield Value("mae", formula("mean-absolute", targets=of), absolutes / of)
    if (variance := second - first**2 / of) > 0:
        yield Value("r2", formula("explained-share", targets=of), 1 - squares / variance)


def _mistaken_names(tally: Tally) -> Iterator[Mistake]:
    """A value that is right and is called something else."""
    every = list(values(tally))
    found = {(each.kind, each.formula): each.value for each in every}
    many = {(each.kind, each.formula): each.steps for each in every}
    by_kind = {kind: value for (kind, _), value in found.items()}
    for kind, other, by in (
        ("rmse", "mse", "without-root"),
        ("mse", "rmse", "with-root"),
        ("mae", "rmse", "with-root"),
        ("rmse", "mae", "absolute"),
    ):
        if kind in by_kind and other in by_kind:
            yield Mistake(kind, formula(by), by_kind[other], "name", by_kind[kind])
    steps = tally.targets
    for (kind, of), value in found.items():
        swapped = {"precision": "recall", "recall": "precision"}.get(kind)
        if swapped is not None:
            exchanged = formula(f"exchanged-{kind}", of)
            yield Mistake(swapped, exchanged, value, "name", found[swapped, of], many[kind, of])
    first, second = (sum(each.said[place] for each in tally.parts) for place in (0, 1))
    if "r2" in by_kind and (variance := second - first**2 / tally.targets) > 0:
        swapped_r2 = 1 - sum(each.squares or 0.0 for each in tally.parts) / variance
        yield Mistake("r2", formula("exchanged-r2"), swapped_r2, "name", by_kind["r2"])
    rates = [part for part in tally.parts if part.squares is not None]
    if len(rates) == len(tally.parts) > 1:
        roots = sum(math.sqrt((each.squares or 0.0) / each.targets) for each in rates) / len(rates)
        right = by_kind.get("rmse", roots)
        noise = 0.01 * right
        of_roots = formula("mean-of-roots", batches=len(rates))
        yield Mistake("rmse", of_roots, roots, "batches", right, noise=noise)
    confusions = [part.confusion for part in tally.parts]
    if len(confusions) > 1 and all(each is not None for each in confusions):
        of_batches = [
            {(v.kind, v.formula): v.value for v in _of_classes(each)} for each in confusions if each is not None
        ]
        for key in set.intersection(*map(set, of_batches)):
            if (whole := found.get(key)) is not None:
                mean = sum(each[key] for each in of_batches) / len(of_batches)
                noise = math.sqrt(max(whole * (1 - whole), 0) / steps)
                of_values = formula("mean-of-values", key[1], batches=len(of_batches))
                yield Mistake(key[0], of_values, mean, "batches", whole, noise=noise)


def _taken_otherwise(parts: Sequence[Part]) -> Iterator[Mistake]:
    """What it comes to where the classes that the model says are read in another way."""
    right = {(each.kind, each.formula): each.value for each in _of_classes(_confusion(parts))}
    hits, of = sum(each.hits or 0 for each in parts), sum(each.targets for each in parts)
    for how in parts[0].otherwise if parts else ():
        other = [each.otherwise[how] for each in parts if how in each.otherwise]
        targets = sum(each for _, each, _ in other)
        if len(other) != len(parts) or not (of and targets):
            continue
        taken = sum(each for each, _, _ in other)
        share = formula("share", over="hits", hits=taken, targets=targets)
        yield Mistake("accuracy", formula(how, share), taken / targets, "taken", hits / of, targets)
        confusions = [each for _, _, each in other if each is not None]
        for each in _of_classes(_added(confusions) if len(confusions) == len(other) else None):
            otherwise = formula(how, each.formula)
            yield Mistake(each.kind, otherwise, each.value, "taken", right[each.kind, each.formula], each.steps)


def _confusion(parts: Sequence[Part]) -> Confusion | None:
    found = [each.confusion for each in parts]
    known = [each for each in found if each is not None]
    return _added(known) if len(known) == len(found) else None


def _added(confusions: Sequence[Confusion]) -> Confusion | None:
    """Of several batches, which may have seen unlike numbers of classes."""
    classes = max(map(len, confusions), default=0)
    padded = (np.pad(each, (0, classes - len(each))) for each in confusions)
    return sum(padded, np.zeros((classes, classes), np.int64)) if classes else None


def _of_classes(confusion: Confusion | None) -> Iterator[Value]:
    """Precision, recall and F1, of each class and their means."""
    of = 0 if confusion is None else int(confusion.sum())
    if confusion is None or not of:
        return
    right, taken, true = np.diag(confusion), confusion.sum(0), confusion.sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.nan_to_num(right / taken)
        recall = np.nan_to_num(right / true)
        f1 = np.nan_to_num(2 * right / (taken + true))
        iou = np.nan_to_num(right / (taken + true - right))
    there = (taken + true) > 0
    for kind, by_class in (("precision", precision), ("recall", recall), ("f1", f1), ("iou", iou)):
        fractions = of**2 / 3 + 1  # about as many different ones have denominators up to this
        for number, value in enumerate(by_class):
            steps = float(true[number]) if kind == "recall" else fractions
            yield Value(kind, formula("class", number=number), float(value), steps)
        yield Value(kind, formula("macro"), float(by_class[there].mean()))
        yield Value(kind, formula("weighted"), float((by_class * true).sum() / of))
        yield Value(kind, formula("micro"), float(right.sum() / of), of)
    yield Value("accuracy", formula("balanced"), float(recall[true > 0].mean()))
    covariance = right.sum() * of - (taken * true).sum()
    scale = math.sqrt(float(of**2 - (taken**2).sum()) * float(of**2 - (true**2).sum()))
    if scale > 0:
        yield Value("mcc", formula("all-classes"), float(covariance) / scale)


def exp(value: float) -> float:
    return math.exp(min(value, 500.0))
