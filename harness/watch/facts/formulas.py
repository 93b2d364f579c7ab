"""Formulas: what an evaluation comes to over all of its rows, and what it comes to by the mistakes that people make."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """Sum of the squared differences between what a regression says and its targets."""
    absolutes: float = 0.0
    totals: tuple[float, float] = (0.0, 0.0)
    """Sums of a regression's targets and of their squares."""
    predicted: tuple[float, float] = (0.0, 0.0)
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


@dataclass
class Hits:
    """What was right in one stream of an evaluation (:data:`STREAMS`)."""

    known: int = 0
    """Batches of which it is known."""
    hits: int = 0
    of: int = 0
    rates: float = 0.0
    """Sum of the rates of the batches."""
    some_empty: bool = False
    """Whether a batch has no target."""
    last: tuple[int, int] = (0, 0)
    """Hits of the latest batch, and of how many."""
    smallest: int = 0
    """Targets of the smallest batch before the latest."""

    def add(self, hits: int, of: int) -> None:
        if self.known:
            self.smallest = min(self.smallest or self.last[1], self.last[1])
        self.known, self.hits, self.of, self.last = self.known + 1, self.hits + hits, self.of + of, (hits, of)
        self.rates += hits / of if of else 0.0
        self.some_empty |= not of


@dataclass
class TakenOtherwise:
    """What an evaluation comes to where classes are taken by mistake in another way."""

    known: int = 0
    hits: int = 0
    of: int = 0
    confusions: int = 0
    confusion: Confusion | None = None


@dataclass
class Sums:
    """What the batches of an evaluation come to, added up: as much for ten batches as for a million."""

    batches: int = 0
    targets: int = 0
    places: int = 0
    largest: int = 0
    """Targets of the largest batch."""
    streams: dict[str, Hits] = field(default_factory=dict)
    with_loss: int = 0
    """Batches of which a loss is known."""
    losses: float = 0.0
    losses_of_targets: float = 0.0
    """Each times its targets."""
    squared_losses: float = 0.0
    perplexities: float = 0.0
    last_loss: float = 0.0
    with_squares: int = 0
    squares: float = 0.0
    roots: float = 0.0
    """Sum of the roots of the batches' mean squares."""
    absolutes: float = 0.0
    totals: tuple[float, float] = (0.0, 0.0)
    predicted: tuple[float, float] = (0.0, 0.0)
    with_confusion: int = 0
    confusion: Confusion | None = None
    by_class: ClassValues | None = None
    """The values of the batches that are made of their confusions."""
    otherwise: dict[str, TakenOtherwise] = field(default_factory=dict)
    last: Part | None = None
    """The latest batch."""

    def add(self, part: Part) -> None:
        self.batches, self.last = self.batches + 1, part
        self.targets += part.targets
        self.places += part.places
        self.largest = max(self.largest, part.targets)
        for stream in STREAMS:
            found = part.agrees if stream == "agrees" else (getattr(part, stream), part.targets)
            if found is not None and found[0] is not None:
                self.streams.setdefault(stream, Hits()).add(found[0], found[1])
        self._add_numbers(part)
        if part.confusion is not None:
            self.with_confusion += 1
            self.confusion = _added(self.confusion, part.confusion)
            values = class_values(part.confusion)
            self.by_class = values if self.with_confusion == 1 else values and self.by_class and self.by_class + values
        for how, (hits, of, confusion) in part.otherwise.items():
            other = self.otherwise.setdefault(how, TakenOtherwise())
            other.known, other.hits, other.of = other.known + 1, other.hits + hits, other.of + of
            if confusion is not None:
                other.confusions, other.confusion = other.confusions + 1, _added(other.confusion, confusion)

    def _add_numbers(self, part: Part) -> None:
        if part.loss is not None:
            self.with_loss += 1
            self.losses, self.last_loss = self.losses + part.loss, part.loss
            self.losses_of_targets += part.loss * part.targets
            self.squared_losses += part.loss**2
            self.perplexities += exp(part.loss)
        if part.squares is not None:
            self.with_squares += 1
            self.squares += part.squares
            self.roots += math.sqrt(part.squares / part.targets) if part.targets else 0.0
        self.absolutes += part.absolutes
        self.totals = self.totals[0] + part.totals[0], self.totals[1] + part.totals[1]
        self.predicted = self.predicted[0] + part.predicted[0], self.predicted[1] + part.predicted[1]

    def plus(self, parts: Iterable[Part]) -> Sums:
        """Sums with more batches; these sums stay as they are."""
        streams = {stream: replace(hits) for stream, hits in self.streams.items()}
        found = replace(self, streams=streams, otherwise={how: replace(each) for how, each in self.otherwise.items()})
        for part in parts:
            found.add(part)
        return found

    def stream(self, name: str) -> Hits | None:
        """What was right in a stream, where it is known of all batches."""
        found = self.streams.get(name)
        return found if found is not None and found.known == self.batches else None

    @property
    def has_losses(self) -> bool:
        """Whether the losses of all batches are known, and of how many targets they are."""
        return 0 < self.with_loss == self.batches and self.targets > 0

    @property
    def whole_confusion(self) -> Confusion | None:
        """Which classes were taken for which, where it is known of all batches."""
        return self.confusion if self.with_confusion == self.batches else None

    @property
    def total(self) -> Part:
        """All batches as one."""
        hits, among_five, agrees = (self.stream(each) for each in STREAMS)
        return Part(
            self.targets,
            self.places,
            None if hits is None else hits.hits,
            None if among_five is None else among_five.hits,
            None if agrees is None else (agrees.hits, agrees.of),
            self.losses_of_targets / self.targets if self.has_losses else None,
            self.squares if 0 < self.with_squares == self.batches else None,
            self.absolutes,
            self.totals,
            self.predicted,
            self.whole_confusion,
        )


def summed(parts: Iterable[Part]) -> Sums:
    """What some batches come to."""
    return Sums().plus(parts)


@dataclass
class Tally:
    """One evaluation."""

    sums: Sums
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
        agrees = self.sums.stream("agrees")
        compared = 0 if agrees is None else agrees.of
        return compared - self.rows if self.divided and self.rows and compared > self.rows else 0


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
    """Standard error of the right value: how much it varies by chance with the rows."""
    denominator: int = 1
    """In lowest terms, where no other batch has as few targets: another share has it as its own one time in that
    many."""


def values(tally: Tally) -> Iterator[Value]:
    """What an evaluation comes to, by every formula that is right."""
    for stream in STREAMS:
        counted = tally.sums.stream(stream)
        if counted is None or not counted.of or (stream == "agrees" and tally.compared_twice):
            continue
        hits, of = counted.hits, counted.of
        yield Value("accuracy", formula("share", over=stream, hits=hits, targets=of), hits / of, of)
        yield Value("error rate", formula("errors", over=stream, errors=of - hits, targets=of), 1 - hits / of, of)
        yield Value("count", formula("number-right", over=stream), hits, of)
    yield from _of_losses(tally.sums)
    yield from _of_regression(tally.sums)
    yield from _of_classes(tally.sums.whole_confusion)


def mistakes(tally: Tally) -> Iterator[Mistake]:
    """What it comes to by the mistakes that people make."""
    sums = tally.sums
    for stream in ("hits", "agrees"):
        counted = sums.stream(stream)
        if counted is not None and not counted.some_empty:
            yield from _mistaken_hits(counted, tally, stream)
    if tally.compared_twice and (agrees := sums.stream("agrees")) is not None:
        twice = formula("compared-twice", hits=agrees.hits, targets=agrees.of, rows=tally.rows or 0)
        yield Mistake("accuracy", twice, agrees.hits / agrees.of, "rows", math.nan, agrees.of)
    if sums.has_losses:
        yield from _mistaken_losses(tally)
    yield from _mistaken_names(tally)
    yield from _taken_otherwise(sums)
    yield from _of_other_rows(tally)


def _mistaken_hits(counted: Hits, tally: Tally, stream: str) -> Iterator[Mistake]:
    hits, of = counted.hits, counted.of
    right, (last, rows) = hits / of, counted.last
    noise = math.sqrt(right * (1 - right) / of)

    def mistake(by: Formula, value: float, group: Group = "rows", steps: float = of, denominator: int = 1) -> Mistake:
        return Mistake("accuracy", by, value, group, right, steps, noise, denominator)

    if (batches := counted.known) > 1:
        own = rows // math.gcd(last, rows) if rows < counted.smallest else 1
        steps = _steps(last, rows, (hits + 0.5) / (of + 1))
        yield mistake(formula("last-batch", hits=last, rows=rows), last / rows, steps=steps, denominator=own)
        without = formula("without-last-batch", hits=hits - last, targets=of - rows)
        yield mistake(without, (hits - last) / (of - rows))
        yield mistake(formula("last-batch-by-all", targets=of), last / of)
        mean = counted.rates / batches
        yield mistake(formula("mean-of-accuracies", batches=batches), mean, "batches", math.inf)
        yield mistake(formula("accuracies-added", batches=batches), mean * batches, steps=math.inf)
        yield mistake(formula("by-batches", hits=hits, batches=batches), hits / batches)
    if tally.size and (whole := tally.size * batches) != of:
        yield mistake(formula("as-if-whole", rows=whole, batches=batches, size=tally.size), hits / whole)
    if (places := tally.sums.places) != of and stream == "hits":
        yield mistake(formula("by-all-places", places=places), hits / places)
    for other in sorted(tally.others - {of}):
        yield mistake(formula("by-another-length", length=other), hits / other)
    yield from _of_earlier(tally, stream, hits, of, mistake)


def _steps(hits: int, rows: int, right: float) -> float:
    """How many values hits of other rows would spread over as evenly: few, where nearly all rows are right."""
    ways = math.lgamma(rows + 1) - math.lgamma(hits + 1) - math.lgamma(rows - hits + 1)
    chance = ways + hits * math.log(right) + (rows - hits) * math.log1p(-right)
    return min(rows, math.expm1(min(-chance, math.log(rows + 1))))


def _of_earlier(tally: Tally, stream: str, hits: int, of: int, mistake: Callable[..., Mistake]) -> Iterator[Mistake]:
    earlier = [each.sums.stream(stream) for each in tally.earlier]
    before = [(each.hits, each.of) for each in earlier if each is not None]
    if len(before) < len(earlier):
        return
    if before and before[-1][1]:
        yield mistake(BEFORE, before[-1][0] / before[-1][1])
    all_hits, all_of = hits + sum(each for each, _ in before), of + sum(each for _, each in before)
    together = formula("all-evaluations", evaluations=len(before) + 1)
    yield mistake(together, all_hits / all_of, steps=all_of)
    yield mistake(formula("all-evaluations-by-one", evaluations=len(before) + 1), all_hits / of)


def _of_other_rows(tally: Tally) -> Iterator[Mistake]:
    """The values of a regression and of classes, each of other rows than those that are evaluated."""
    sums, before = tally.sums, [each.sums for each in tally.earlier]
    right = {(each.kind, each.formula.key): each.value for each in _by_rows(sums)}
    others: list[tuple[str, Sums]] = []
    if sums.batches > 1 and sums.last is not None:
        others.append(("value-of-last-batch", summed([sums.last])))
    if before:
        others += [("value-before", before[-1]), ("value-of-all", summed(each.total for each in (*before, sums)))]
    for by, other in others:
        for taken in _by_rows(other):
            if (value := right.get((taken.kind, taken.formula.key))) is not None:
                steps = 1 if taken.value in (0, 1) else taken.steps  # few rows often come to that
                yield Mistake(taken.kind, formula(by, taken.formula), taken.value, "rows", value, steps)


def _by_rows(sums: Sums) -> Iterator[Value]:
    yield from _of_regression(sums)
    several = sums.whole_confusion is not None and len(sums.whole_confusion) > 2
    for value in _of_classes(sums.whole_confusion):
        if not (several and value.formula.kind == "class"):  # with each there are more numbers that chance may give
            yield value


def _of_losses(sums: Sums) -> Iterator[Value]:
    if not sums.has_losses:
        return
    of, total, means, batches = sums.targets, sums.losses_of_targets, sums.losses, sums.batches
    mean = formula("mean", targets=of)
    yield Value("loss", mean, total / of)
    yield Value("loss", formula("sum", targets=of), total)
    yield Value("loss", formula("batches-added", batches=batches), means)
    yield Value("perplexity", formula("exponential", mean), exp(total / of))
    if batches > 1:  # of which metrics::mean-of-means judges those that matter
        yield Value("loss", formula("mean-of-means", batches=batches), means / batches)


def _mistaken_losses(tally: Tally) -> Iterator[Mistake]:
    sums = tally.sums
    of, total, means, batches = sums.targets, sums.losses_of_targets, sums.losses, sums.batches
    right, mean = total / of, means / batches
    spread = math.sqrt(max(0.0, sums.squared_losses / batches - mean**2))
    noise = max(spread / math.sqrt(batches), 0.01 * abs(right))

    def mistake(by: Formula, value: float) -> Iterator[Mistake]:
        yield Mistake("loss", by, value, "rows", right, noise=noise)
        exponential = formula("exponential", by)
        yield Mistake("perplexity", exponential, exp(value), "rows", exp(right), noise=noise * exp(right))

    if batches > 1:
        for by, value in (
            (formula("exponential", formula("mean-of-means", batches=batches)), exp(mean)),
            (formula("mean-of-perplexities", batches=batches), sums.perplexities / batches),
        ):
            yield Mistake("perplexity", by, value, "batches", exp(right), noise=noise * exp(right))
        yield from mistake(formula("last-batch-loss"), sums.last_loss)
        yield from mistake(formula("means-by-targets", targets=of), means / of)
        yield from mistake(formula("sum-by-batches", batches=batches), total / batches)
    for other in sorted(tally.others - {of, batches}):
        yield from mistake(formula("means-by-another-length", length=other), means / other)
        yield from mistake(formula("sum-by-another-length", length=other), total / other)
    before = [each.sums for each in tally.earlier]
    if before and before[-1].has_losses:
        yield from mistake(BEFORE, before[-1].losses_of_targets / before[-1].targets)
    if all(each.has_losses for each in before):
        together = formula("all-evaluations", evaluations=len(before) + 1)
        all_losses = total + sum(each.losses_of_targets for each in before)
        yield from mistake(together, all_losses / (of + sum(each.targets for each in before)))


def _of_regression(sums: Sums) -> Iterator[Value]:
    of = sums.targets
    if not 0 < sums.with_squares == sums.batches or not of:
        return
    squares, absolutes, (first, second) = sums.squares, sums.absolutes, sums.totals
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
    sums, steps = tally.sums, tally.sums.targets
    for (kind, of), value in found.items():
        swapped = {"precision": "recall", "recall": "precision"}.get(kind)
        if swapped is not None:
            exchanged = formula(f"exchanged-{kind}", of)
            yield Mistake(swapped, exchanged, value, "name", found[swapped, of], many[kind, of])
    first, second = sums.predicted
    if "r2" in by_kind and (variance := second - first**2 / steps) > 0:
        swapped_r2 = 1 - sums.squares / variance
        yield Mistake("r2", formula("exchanged-r2"), swapped_r2, "name", by_kind["r2"])
    if sums.with_squares == sums.batches > 1:
        roots = sums.roots / sums.batches
        right = by_kind.get("rmse", roots)
        noise = 0.01 * right
        of_roots = formula("mean-of-roots", batches=sums.batches)
        yield Mistake("rmse", of_roots, roots, "batches", right, noise=noise)
    if sums.with_confusion == sums.batches > 1 and sums.by_class is not None:
        for kind, of, added in sums.by_class.each():
            if (whole := found.get((kind, of))) is not None and not math.isnan(added):
                noise = math.sqrt(max(whole * (1 - whole), 0) / steps)
                of_values = formula("mean-of-values", of, batches=sums.batches)
                yield Mistake(kind, of_values, added / sums.batches, "batches", whole, noise=noise)


def _taken_otherwise(sums: Sums) -> Iterator[Mistake]:
    """What it comes to where the classes that the model says are read in another way."""
    right = {(each.kind, each.formula): each.value for each in _of_classes(sums.whole_confusion)}
    hits = sums.streams.get("hits", Hits()).hits
    for how, other in sums.otherwise.items():
        if other.known != sums.batches or not (sums.targets and other.of):
            continue
        share = formula("share", over="hits", hits=other.hits, targets=other.of)
        rate = other.hits / other.of
        yield Mistake("accuracy", formula(how, share), rate, "taken", hits / sums.targets, other.of)
        for value in _of_classes(other.confusion if other.confusions == other.known else None):
            otherwise = formula(how, value.formula)
            yield Mistake(value.kind, otherwise, value.value, "taken", right[value.kind, value.formula], value.steps)


def _added(one: Confusion | None, other: Confusion) -> Confusion:
    """Confusion of several batches, which may have seen unlike numbers of classes."""
    if one is None:
        return other
    classes = max(len(one), len(other))
    padded: list[Confusion] = [np.pad(each, (0, classes - len(each))) for each in (one, other)]
    return padded[0] + padded[1]


@dataclass(frozen=True)
class ClassValues:
    """Precision, recall, F1 and IoU of one confusion, or of several added up."""

    by_class: npt.NDArray[np.float64]
    """(4, 3 averages and then the classes)."""
    balanced: float
    mcc: float
    """Not a number where it is not defined."""

    def __add__(self, other: ClassValues) -> ClassValues:
        width = min(self.by_class.shape[1], other.by_class.shape[1])  # of the classes that both know
        added = self.by_class[:, :width] + other.by_class[:, :width]
        return ClassValues(added, self.balanced + other.balanced, self.mcc + other.mcc)

    def each(self) -> Iterator[tuple[str, Formula, float]]:
        """Kind, formula and value."""
        for kind, (macro, weighted, micro, *classes) in zip(CLASS_KINDS, self.by_class.tolist(), strict=True):
            yield from ((kind, formula("class", number=number), value) for number, value in enumerate(classes))
            yield kind, formula("macro"), macro
            yield kind, formula("weighted"), weighted
            yield kind, formula("micro"), micro
        yield "accuracy", formula("balanced"), self.balanced
        yield "mcc", formula("all-classes"), self.mcc


CLASS_KINDS = ("precision", "recall", "f1", "iou")


def class_values(confusion: Confusion | None) -> ClassValues | None:
    """Precision, recall, F1 and IoU, of each class and their means; None where nothing was counted."""
    of = 0 if confusion is None else int(confusion.sum())
    if confusion is None or not of:
        return None
    right, taken, true = np.diag(confusion), confusion.sum(0), confusion.sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.nan_to_num(right / taken)
        recall = np.nan_to_num(right / true)
        f1 = np.nan_to_num(2 * right / (taken + true))
        iou = np.nan_to_num(right / (taken + true - right))
    there, micro = (taken + true) > 0, right.sum() / of
    rows = [[each[there].mean(), (each * true).sum() / of, micro, *each] for each in (precision, recall, f1, iou)]
    covariance = right.sum() * of - (taken * true).sum()
    scale = math.sqrt(float(of**2 - (taken**2).sum()) * float(of**2 - (true**2).sum()))
    mcc = float(covariance) / scale if scale > 0 else math.nan
    return ClassValues(np.array(rows, dtype=np.float64), float(recall[true > 0].mean()), mcc)


def _of_classes(confusion: Confusion | None) -> Iterator[Value]:
    """What the confusion of a whole evaluation comes to."""
    found = class_values(confusion)
    if found is None or confusion is None:
        return
    of, true = int(confusion.sum()), confusion.sum(1)
    fractions = of**2 / 3 + 1  # about as many different ones have denominators up to this
    for kind, by, value in found.each():
        steps = {"micro": float(of), "class": fractions}.get(by.kind, math.inf)
        if by.kind == "class" and kind == "recall":
            steps = float(true[dict(by.numbers)["number"]])
        if not math.isnan(value):
            yield Value(kind, by, value, steps)


def exp(value: float) -> float:
    return math.exp(min(value, 500.0))
