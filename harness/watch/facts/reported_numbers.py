"""Reported numbers: by which formula a number that a script reports comes out of the rows that it evaluated."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch

from harness import launch
from harness.torch_objects import is_dense
from harness.watch.bounded import MOST, FirstByKey, Latest, LatestByKey
from harness.watch.events import (
    IGNORED,
    Backward,
    BackwardBegins,
    End,
    Fact,
    Forward,
    LoaderMade,
    LossCall,
    Pass,
    PassBegins,
    Reported,
    Scored,
)
from harness.watch.facts.counted_batches import MOST_SCORES, CountedBatch, read
from harness.watch.facts.datasets import length
from harness.watch.facts.formula import AVERAGES, Formula, formula
from harness.watch.facts.formulas import (
    BEFORE,
    RATES,
    Group,
    Mistake,
    Part,
    Sums,
    Tally,
    Value,
    mistakes,
    summed,
    values,
)
from harness.watch.facts.samplers import shares
from harness.watch.host import brought
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import LABELS

MOST_WAITING = MOST
"""Batches, or losses, whose tensors are kept where they are until they are read together."""

MOST_GROUPS = 256
"""Calls of one line without a loader of which each is looked at alone. By reasoning: what is given to a model in more
pieces than that is seldom several evaluations."""

MOST_PLACES, MOST_ROUNDS = 128, 64
"""Numbers of a script that are followed, and how often each is looked at."""

EVIDENCE = 4.0
"""Digits, over all rounds and beside those of the number of formulas, in which a mistaken one gives a number that no
right one gives: that one of them does by chance has then a probability of one in 10,000."""

OF_LAST_BATCH = re.compile(r"last-batch|last-batch-loss|exponential\(last-batch-loss\)|value-of-last-batch\(.*\)")
"""Keys of the formulas over the last batch alone: numbers of one line are that together. No other mistake is as usual:
half of the chance of a false alarm is left to them, and half to all others."""

OWN = 2.5
"""Digits that are known before a number is compared that comes right after an evaluation, and that neither the
evaluation nor what was trained on gives. By reasoning: of 300 right ones, one is of a few rows that nobody has seen."""

MOST_DIGITS = 5.0
"""Digits in which float32 is sure."""

ROUNDING = 2e-6
"""Share by which a number may be off, because it was added up in float32."""

NUMBER = re.compile(
    r"(?<![\w.@])(?<!\w-)[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\d)(?!\w)(?!\s*[a-z]+/s(?:ec)?\b)(\s*%)?"
)
"""No part of a name, as in prec@1, and no number of a unit, as in 12s or 35.2 it/s."""

BAR = re.compile(r"\d+%\|[^|]*\|\s*\S+/\S+\s*\[[\d:?]+<[\d:?]+,\s*[\d.?]+\s*\w+/\w+")
"""What tqdm draws: how far it is, how long it has taken, and how fast it goes."""

COUNTED = re.compile(r"(?<!per)(?:^|[\s(\[,])(epoch|step|iter|iteration|batch|fold|round|update|seed|run|trial)\s*$")
"""Ends of names whose number says which of them is meant, and not how large something is."""

JOINED = re.compile(r"\s*\b(?:in|of|at|on|for|after|during|by)\s*$")
FILLED = ("is", "was", "of", "out of", "to", "now", "over")
"""What may stand between a name and its number."""

NAMES: tuple[tuple[str, str], ...] = (
    ("perplexity", r"ppl|perplex"),
    ("f1", r"f1|f-1|f_1|fscore|f-score|dice"),
    ("iou", r"iou|jaccard"),
    ("precision", r"precision|prec\b"),
    ("recall", r"recall|sensitivity"),
    ("mcc", r"mcc|matthews"),
    ("rmse", r"rmse|root.mean"),
    ("mse", r"mse|mean.squared"),
    ("mae", r"mae|mean.abs"),
    ("r2", r"\br2|r\^2|r²"),
    ("accuracy", r"acc|correct|top.?1|hits?\b"),
    ("loss", r"loss|nll|entropy|\bce\b|bce"),
    ("error rate", r"err"),
)
"""What numbers are called, the most particular first."""

HELD_OUT = re.compile(r"\bval(?!u)|\bvalid|\btest|\beval|\bdev\b|held.?out")
"""Names of numbers that are of other rows than those of the training."""

OTHERS = re.compile(
    r"best|max|min\b|prev|last|ema|smooth|running|patience|std|var\b|\blr\b|rate|time|epoch|\bsteps?\b|train"
)
"""Names of numbers that are not of the evaluation at hand, or are no results: of these no mistake is told."""


BEST = re.compile(r"best|lowest|highest|\bmin\b|\bmax\b|minimum|maximum")
"""Names of numbers that are of the evaluation, among those so far, that gave the lowest or the highest."""


class NumberReported(Fact):
    """A run is over in which a number was reported after evaluations. ``where`` it was, if in the script.

    By which formula it comes out of the rows that were evaluated: each time the same, to all of its digits.
    """

    needs = "number that is reported after an evaluation"
    of_run = True
    name: str
    number: float
    """The latest."""
    rounds: int = 1
    formula: Formula | None = None
    """The right one that gives it."""
    mistake: Formula | None = None
    """The mistaken one that gives it, where no right one does."""
    group: Group = "rows"
    right: float = math.nan
    """What the evaluation gives without the mistake, the latest."""
    off: float = 0.0
    """Standard errors by which the mistake moves it, at most."""

    @property
    def kind(self) -> str | None:
        """What it is, by its name."""
        return kind_of(self.name)

    @property
    def by(self) -> Formula | None:
        """The formula that gives it, right or mistaken."""
        return self.formula or self.mistake

    @property
    def of_training(self) -> bool:
        """Whether it is explained by losses of the training, of which no mistake is tried."""
        return self.formula is not None and self.formula.of_training


class Number(NamedTuple):
    """A number in a text."""

    name: str
    value: float
    half: float
    """Half of a unit in its last digit."""
    percent: bool


def numbers_in(text: str) -> Iterator[Number]:
    """The numbers of a text, by what stands before them."""
    end, name, text = 0, "", BAR.sub(" ", text)
    for found in NUMBER.finditer(text):
        before = re.findall(r"[A-Za-z][\w\s@²^/-]*", text[end : found.start()])
        words = before[-1].strip().lower()[-40:] if before else ""
        words, end = name if not words or (name and words in FILLED) else words, found.end()
        name, which = words, COUNTED.search(words)
        if which is not None and kind_of(words) is not None and "." not in found[0]:  # "loss in epoch 6: 0.5"
            name, words = JOINED.sub("", words[: which.start()]).strip(), which[1]
        digits = found[0].rstrip("% ").strip()
        mantissa, _, exponent = digits.lower().partition("e")
        places = len(mantissa.partition(".")[2]) - int(exponent or 0)
        yield Number(words, float(digits), 0.5 * 10.0**-places, found[1] is not None)


def kind_of(name: str) -> str | None:
    """What a number is, by its name."""
    return next((kind for kind, pattern in NAMES if re.search(pattern, name)), None)


@dataclass(eq=False)
class _Evaluation:
    """An evaluation: a pass without training, or calls of one line between two updates."""

    of: Pass | None
    updates: int
    sums: Sums = field(default_factory=Sums)
    """Sums of all batches that are read."""
    waiting: list[CountedBatch] = field(default_factory=list)
    """Batches that are not read yet; the latest may be counted on."""
    number: int = -1
    """Number of the latest batch, or of the forward where there is none."""
    batches: int = 0
    bases: list[int | None] = field(default_factory=list)
    """Where there is no loader, of which tensor each of the first batches is a part."""
    alone: list[Part] = field(default_factory=list)
    """Sums of the first batches, each alone."""
    twice: bool = False
    """Whether a batch was given to the model again."""
    tally: Tally | None = None
    """What it came to, when it was over."""

    def batch(self, number: int, base: int | None) -> CountedBatch | None:
        """What the batch of a number is counted in; None where others came after it. ``base``: where it lies."""
        if number <= self.number:
            self.twice = True
            return self.waiting[-1] if number == self.number and self.waiting else None
        self.number, self.batches = number, self.batches + 1
        if self.of is None and len(self.bases) <= MOST_GROUPS:
            self.bases.append(base)
        if len(self.waiting) >= MOST_WAITING:
            self._read(self.waiting)
            self.waiting.clear()
        self.waiting.append(CountedBatch())
        return self.waiting[-1]

    def _read(self, batches: Sequence[CountedBatch]) -> None:
        parts = read(batches)
        self.sums = self.sums.plus(parts)
        self.alone += parts[: len(self.bases) - len(self.alone)]

    def so_far(self) -> Sums:
        """What all batches come to."""
        self._read(self.waiting[:-1])
        self.waiting = self.waiting[-1:]
        return self.sums.plus(read(self.waiting))

    def groups(self) -> Iterator[Sums]:
        """Sums of the batches of one tensor, and of each batch alone: without a loader, calls of one line may be
        several evaluations."""
        parts = [*self.alone, *read(self.waiting[-1:])]
        for base in set(self.bases):
            yield summed(part for part, of in zip(parts, self.bases, strict=False) if of == base)
        yield from (summed([part]) for part in parts)

    def end(self, tally: Tally) -> None:
        """Keep what it came to: another evaluation of these rows begins."""
        self.tally = self.tally or tally
        self.sums = self.tally.sums
        for each in (self.waiting, self.bases, self.alone):
            each.clear()

    @property
    def whole(self) -> bool:
        """Whether all batches came; a loop that counts (Lightning's does) never asks for more."""
        of = self.of
        return of is not None and (of.exhausted or (of.planned is not None and of.batches >= of.planned))

    @property
    def over(self) -> bool:
        return self.whole or (self.of is not None and self.of.over)


LIKE: Mapping[str, frozenset[str]] = {
    "accuracy": frozenset({"accuracy", "count"}),
    "loss": frozenset({"loss", "mse", "rmse", "mae", "perplexity"}),
    "mse": frozenset({"mse", "loss"}),
    "mae": frozenset({"mae", "loss"}),
    "error rate": frozenset({"error rate", "count", "loss", "mse", "rmse", "mae"}),
}
"""What a name of a kind may mean besides."""


class Known(NamedTuple):
    """What a number may be."""

    right: list[Value]
    """Values of the rows that are evaluated."""
    trained: list[Value]
    """Values of the rows that are trained on, meanwhile."""
    wrong: list[Mistake]
    whole: bool
    """Whether all evaluations are over."""
    fresh: bool = False
    """Whether nothing was updated since the latest of them."""
    hits: bool = False
    """Whether the accuracy of what was trained on is known."""


class Round(NamedTuple):
    """One time that a number was reported."""

    right: frozenset[Formula]
    """The formulas that give it."""
    wrong: Mapping[str, tuple[Mistake, float]]
    """The mistaken ones that do, by their keys, with the digits in which they alone do."""
    formulas: int
    """How many numbers the mistaken ones give."""
    own: bool = False
    """Whether it is of the evaluation at hand, and no accuracy of the training."""


class _Training(NamedTuple):
    """What was trained on, added up."""

    total: float = 0.0
    """Sum of losses."""
    number: int = 0
    by_rows: float = 0.0
    """Sum of losses times rows."""
    rows: int = 0
    hits: int = 0
    of: int = 0
    """Rows of which it is known whether they are hits."""

    def and_one(self, loss: float, rows: int) -> _Training:
        return self.plus(_Training(loss, 1, loss * rows, rows))

    def plus(self, other: _Training) -> _Training:
        sums: Any = (one + another for one, another in zip(self, other, strict=True))
        return _Training(*sums)

    def since(self, other: _Training) -> _Training:
        differences: Any = (one - another for one, another in zip(self, other, strict=True))
        return _Training(*differences)

    def values(self, over: str) -> Iterator[Value]:
        """What it comes to; ``over`` is one of :data:`harness.watch.facts.formula.TRAINED`."""
        if self.of:
            hits = formula("training-hits", over=over, hits=self.hits, targets=self.of)
            yield Value("accuracy", hits, self.hits / self.of, self.of)
        if self.number and self.rows:
            mean = formula("training-mean", over=over, losses=self.number)
            yield Value("loss", mean, self.total / self.number)
            by_rows = formula("training-mean-by-rows", over=over, rows=self.rows)
            yield Value("loss", by_rows, self.by_rows / self.rows)
            yield Value("loss", formula("training-sum", over=over, losses=self.number), self.total)


@dataclass(eq=False)
class NumberSeries:
    """A number that one line reports again and again."""

    name: str
    where: str | None
    before: _Training = field(default_factory=_Training)
    """The training losses until it was reported the time before."""
    latest: _Training = field(default_factory=_Training)
    """The training losses until it was reported last."""
    value: float = 0.0
    rounds: list[Round] = field(default_factory=list)
    series: dict[int, Number] = field(default_factory=dict)
    """Number of updates made to the first number that was reported then."""
    moment: int = -1
    """When it was reported last."""
    table: list[Number] = field(default_factory=list)
    """What it was each time since then: one row of a table for each evaluation, perhaps."""


class ReportedNumbers(Recogniser):
    makes = (NumberReported,)

    def begin(self) -> None:
        self._sources = LatestByKey[tuple[Any, ...], Latest[_Evaluation]](16)  # each counts its batches one by one
        """Rows and model to their evaluations, the latest last."""
        self._open = LatestByKey[Pass, _Evaluation](most=8)  # more passes than go on beside each other
        self._by_line = LatestByKey[tuple[Any, ...], _Evaluation](16)
        """Evaluations of no loader that may go on."""
        self._latest: tuple[int, CountedBatch, Forward] | None = None
        """What the latest forward without a graph came to."""
        self._losses: list[tuple[torch.Tensor, int]] = []
        """Losses that were differentiated since a number was reported, each with its number of rows."""
        self._given: list[torch.Tensor | None] = []
        """What the loss function gave of each, where it is one mean."""
        self._share: float | None = None
        """What share of that was differentiated, the same each time; NaN where it is not known, or varies."""
        self._hits: list[tuple[torch.Tensor, int]] = []
        """Hits of the rows that were trained on since then."""
        self._last = 0.0
        """The one before."""
        self._last_hits: tuple[int, int] = (0, 0)
        """Hits of the latest batch that was trained on, and of how many."""
        self._in_pass, self._in_all = _Training(), _Training()
        """What was before, in the pass at hand and in the whole run."""
        self._passes = Latest[_Training]()
        """The passes before."""
        self._moment = 0
        """Changes when a model is called."""
        self._tables: dict[int, NumberSeries] = {}
        """Numbers that were reported several times since a model was called."""
        self._lengths = FirstByKey[int, None](16)  # with each there are more mistakes to look for
        """Lengths of datasets, and numbers of batches of their loaders."""
        self._places: dict[tuple[str, str | None, int], NumberSeries] = {}
        self._header = ""
        """The latest text without a number, which may name the columns of a table."""

    # What is evaluated

    def on_loader_made(self, event: LoaderMade) -> None:
        of = length(getattr(event.loader, "dataset", None)), length(event.loader)
        self._lengths.update((each, None) for each in of if each)

    def on_pass_begins(self, event: PassBegins) -> None:
        if event.of.number > 1 or not self._in_pass.number:
            self._add_up()
            if self._in_pass.number:
                self._passes.append(self._in_pass)
            self._in_pass = _Training()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._by_line.clear()
        if event.root.numel() == 1:
            given = event.forwards[-1].tensors.values() if event.forwards else ()
            rows = next((len(each) for each in given if each.dim()), 1)
            self._losses.append((event.root.detach() / event.scale, rows))
            means = [call.value.detach() for call in event.losses if call.is_mean and call.value.dim() == 0]
            self._given.append(means[0] if len(means) == len(event.losses) == 1 else None)
            if len(self._losses) >= MOST_WAITING:
                self._add_up()

    def on_backward(self, event: Backward) -> None:
        self._latest = None

    def on_forward(self, event: Forward) -> None:
        self._latest, self._moment = None, self._moment + 1
        if self._tables:
            self._read_tables()
        if event.gradients:
            self._count_trained(event)
            return
        counted = self._batch(event)
        if counted is None:
            return
        self._latest = event.number, counted, event
        labels = _labels(event)
        if labels is None:
            return
        counted.count(event.logits, labels, event.loss)
        if event.loss is not None and event.loss.dim() == 0:
            counted.loss = event.loss.detach()
            ahead = labels.dim() == 2 and event.logits is not None and event.logits.dim() == 3
            if ahead and event.logits is not None and event.logits.shape[-1] > MOST_SCORES:
                counted.targets = (labels[:, 1:] != IGNORED).sum()  # of the next token, as language models are

    def _count_trained(self, event: Forward) -> None:
        """Hits of the rows of a batch, as they are when it is trained on."""
        labels = _labels(event) if event.batch is not None else None
        logits = event.logits
        if labels is None or logits is None or labels.dim() != 1 or labels.is_floating_point():
            return
        if logits.dim() == 2 and len(logits) == len(labels) and logits.shape[1] > 1 and logits.device == labels.device:
            self._hits.append(((logits.detach().argmax(1) == labels).sum(), len(labels)))
            if len(self._hits) >= MOST_WAITING:
                self._add_up()

    def _batch(self, event: Forward) -> CountedBatch | None:
        """What a forward is counted in; None where it is of a pass that trains, or comes late."""
        model = self.monitor.number_of(event.model)
        key: tuple[Any, ...]
        # After the last batch that was trained on, rows of no loader come.
        if event.batch is not None and not (event.batch.of.trains and event.batch.of.over):
            of = event.batch.of
            if of.trains:
                return None
            if of not in self._open:
                key = "loader", length(of.dataset), of.where, model
                self._open[of] = self._began(key, _Evaluation(of, event.at.updates_made))
            return self._open[of].batch(event.batch.number, None)
        given = next((each for each in event.tensors.values() if each.dim()), None)
        base = None if given is None else given if given._base is None else given._base
        key = "rows", event.where, model
        if key not in self._by_line:
            self._by_line[key] = self._began(key, _Evaluation(None, event.at.updates_made))
        return self._by_line[key].batch(event.number, None if base is None else base.data_ptr())

    def _began(self, key: tuple[Any, ...], evaluation: _Evaluation) -> _Evaluation:
        of_key = self._sources.pop(key, Latest[_Evaluation]())
        for each in of_key:
            each.end(self._tally(each, []))
        of_key.append(evaluation)
        self._sources[key] = of_key
        return evaluation

    def on_scored(self, event: Scored) -> None:
        if self._latest is None or self._latest[0] != event.forward.number:
            return
        _, counted, forward = self._latest
        if event.agrees is not None and (event.agrees.dim() or _is_of_one_row(forward)):
            agrees, of = counted.agrees or (0, 0)
            counted.agrees = agrees + event.agrees.sum(), of + event.agrees.numel()
        if event.loss is not None:
            self._count_loss(counted, forward, event.loss)

    def _count_loss(self, counted: CountedBatch, forward: Forward, call: LossCall) -> None:
        target = call.target.detach()
        if not counted.ways:
            counted.count(forward.logits, target)
        by_row = call.ignored is None and call.function in ("cross_entropy", "kl_div")
        targets: Any = len(target) if by_row else call.targets
        if call.is_weighted or counted.loss is not None:
            return
        value = call.value.detach().double()
        counted.loss = value if call.reduction == "mean" else value.sum() / torch.as_tensor(targets).clamp(min=1)
        if not counted.ways:
            counted.targets, counted.places = targets, target.numel()

    # What is reported

    def on_reported(self, event: Reported) -> None:
        slots = list(enumerate(self.named(event.text)))
        if not self._sources and not self._in_all.number and not self._losses:
            return
        known: Known | None = None
        for slot, number in slots:
            key = number.name, event.where, slot
            place = self._places.get(key)
            if place is None:
                if len(self._places) >= MOST_PLACES:
                    continue
                place = self._places[key] = NumberSeries(number.name, event.where)
            if len(place.rounds) >= MOST_ROUNDS:
                continue
            known = known or self._known(event.at.updates_made)
            place.value = number.value
            place.series.setdefault(event.at.updates_made, number)
            place.table = [*place.table, number] if place.moment == self._moment else [number]
            if len(place.table) > 1:
                self._tables[id(place)] = place
            place.moment = self._moment
            if self._in_all != place.latest:  # else it is said twice, as printed and to a log
                place.before, place.latest = place.latest, self._in_all
            since = self._with_unscaled(
                [*self._in_all.since(place.before).values("report"), *self._in_all.values("training")]
            )
            right = [*known.right, *(self._best() if BEST.search(number.name) else ())]
            place.rounds.append(judged(number, known._replace(right=right, trained=[*known.trained, *since])))
        if slots:
            self._by_line.clear()

    def named(self, text: str) -> list[Number]:
        """The numbers of a text; those of a row of a table by the names over its columns."""
        found = list(numbers_in(text))
        if not found:
            self._header = text if len(text.split()) > 1 else self._header
        elif not any(each.name for each in found):
            for names in (re.split(r"\s{2,}|\s*\|\s*|\t", self._header.strip(" |")), self._header.split()):
                if len(names) == len(found):
                    return [each._replace(name=name.lower()) for name, each in zip(names, found, strict=True)]
        return found

    def _known(self, updates: int) -> Known:
        """What the latest evaluations come to, and by mistake; and whether all of them are over."""
        right, wrong, whole = list[Value](), list[Mistake](), True
        for evaluations in self._sources.values():
            *before, latest = evaluations
            earlier = [each.tally for each in before if each.tally]
            tally = self._tally(latest, earlier)
            right += values(tally)
            if not latest.over and latest.of is not None:
                whole = False
                right += values(earlier[-1]) if earlier else ()
            elif tally.judged:
                wrong += mistakes(tally)
            elif latest.of is None and 1 < tally.sums.batches <= MOST_GROUPS:
                right += (value for sums in latest.groups() for value in values(Tally(sums)))
                wrong += (each for each in mistakes(tally) if each.group != "rows")
        self._add_up()
        latest_loss = Value("loss", formula("training-loss", over="batch"), self._last)
        trained = [latest_loss] if self._in_all.number else []
        hits, of = self._last_hits
        if of:
            batch = formula("training-hits", over="batch", hits=hits, targets=of)
            trained.append(Value("accuracy", batch, hits / of, of))
        latest_updates = max((evaluations[-1].updates for evaluations in self._sources.values()), default=-1)
        return Known(
            right,
            self._with_unscaled([*trained, *self._in_pass.values("pass")]),
            wrong,
            whole,
            latest_updates == updates,
            of > 0,
        )

    def _with_unscaled(self, trained: Iterable[Value]) -> list[Value]:
        """Values of the training, and those of its losses before they were divided for accumulation, say."""
        found, share = list(trained), self._share
        if share is None or math.isnan(share) or abs(share - 1) <= ROUNDING:
            return found
        losses = [each for each in found if each.kind == "loss"]
        return [*found, *(Value(kind, formula("unscaled", of), value / share) for kind, of, value, _ in losses)]

    def _best(self) -> Iterator[Value]:
        """The lowest and the highest of what the evaluations of the same rows came to, by each formula."""
        for evaluations in self._sources.values():
            found: dict[tuple[str, str], list[Value]] = {}
            for evaluation in evaluations:
                for value in values(self._tally(evaluation, [])):
                    found.setdefault((value.kind, value.formula.key), []).append(value)
            for several in found.values():
                numbers, last = [each.value for each in several], several[-1]
                for by, best in (("lowest", min(numbers)), ("highest", max(numbers))) if len(several) > 1 else ():
                    of = replace(last.formula, numbers=several[numbers.index(best)].formula.numbers)
                    yield Value(last.kind, formula(by, of, evaluations=len(several)), best, last.steps)

    def _read_tables(self) -> None:
        """Judge again what was reported once for each evaluation when all of them were over."""
        for place in self._tables.values():
            number, first = len(place.table), place.table[0]
            again = all(abs(each.value - first.value) <= each.half + first.half for each in place.table)
            if again or number < len(place.rounds):
                continue  # said twice, to the terminal and in a log, or not only in a table
            known = [self._known_of(row, number) for row in range(number)]
            rounds = [judged(line, of) for line, of in zip(place.table, known, strict=False) if of is not None]
            if len(rounds) == number:
                place.rounds[-number:] = rounds
        self._tables.clear()

    def _known_of(self, row: int, number: int) -> Known | None:
        """What the evaluations of one row of a table come to; None where there are not as many as rows."""
        right, trained, wrong = list[Value](), list[Value](), list[Mistake]()
        for evaluations in self._sources.values():
            tallies = [self._tally(each, []) for each in evaluations] if len(evaluations) == number else []
            if tallies:
                tally = replace(tallies[row], earlier=tallies[:row])
                right += values(tally)
                wrong += mistakes(tally) if tally.judged else ()
        passes = [*self._passes, self._in_pass]
        if len(passes) == number:
            trained += passes[row].values("pass")
        return Known(right, trained, wrong, True, fresh=True) if right or trained else None

    def _add_up(self) -> None:
        new = _Training()
        read = brought([*(loss for loss, _ in self._losses), *(each for each in self._given if each is not None)])
        losses, given = read[: len(self._losses)], iter(read[len(self._losses) :])
        for loss, (_, rows), mean in zip(losses, self._losses, self._given, strict=True):
            self._last = float(loss)
            new = new.and_one(self._last, rows)
            whole = None if mean is None else float(next(given))
            share = self._last / whole if whole else math.nan
            same = self._share is None or abs(share - self._share) <= ROUNDING * abs(share)
            self._share = share if same else math.nan
        counted = [*zip(map(int, brought([each for each, _ in self._hits])), (of for _, of in self._hits), strict=True)]
        self._last_hits = (*counted, self._last_hits)[max(0, len(counted) - 1)]
        hits, of = sum(each for each, _ in counted), sum(each for _, each in counted)
        new = new._replace(hits=hits, of=of)
        self._in_pass, self._in_all = self._in_pass.plus(new), self._in_all.plus(new)
        self._losses.clear()
        self._given.clear()
        self._hits.clear()

    def _tally(self, of: _Evaluation, earlier: list[Tally]) -> Tally:
        if of.tally is not None:
            return of.tally
        sums, loader = of.so_far(), None if of.of is None else of.of.loader
        rows = None if of.of is None else length(of.of.dataset)
        judged = of.of is not None and of.whole and not of.of.shortened and not of.twice
        judged = judged and of.of is not None and sums.batches == of.of.batches
        others = frozenset(self._lengths) - {rows, sums.batches}
        size = getattr(loader, "batch_size", None) or sums.largest or None
        divided = loader is not None and launch.in_process_group() and shares(loader) > 1
        return Tally(sums, size, rows, judged, earlier, divided, others)

    @property
    def evaluations(self) -> list[Latest[Any]]:
        """Evaluations of each set of rows that have begun."""
        return list(self._sources.values())

    def totals(self) -> list[tuple[str | None, list[Part]]]:
        """Where the model was called for each set of rows, and what each evaluation of them came to, in all."""
        found = []
        for (how, *key), evaluations in self._sources.items():
            parts = [self._tally(each, []).sums.total for each in evaluations]
            found.append((key[1] if how == "loader" else key[0], parts))
        return found

    @property
    def series(self) -> list[tuple[str, dict[int, Number]]]:
        """The name of each number that was reported, and what it was by the number of updates made."""
        return [(place.name, place.series) for place in self._places.values()]

    def on_end(self, event: End) -> None:
        self._read_tables()
        lines: dict[str | None, list[NumberSeries]] = {}
        for place in self._places.values():
            lines.setdefault(place.where, []).append(place)
        for places in lines.values():
            enough = keys_of_mistakes(places)
            for fact in (outcome(place, enough) for place in places):
                if fact is not None:
                    self.tell(fact)


def _is_of_one_row(event: Forward) -> bool:
    """Whether a model said something of one row, so that one number may be whether that is right."""
    logits = event.logits
    return logits is not None and logits.numel() > 1 and (logits.dim() == 1 or len(logits) == 1)


def _labels(event: Forward) -> torch.Tensor | None:
    """What the rows of a forward really are, as its arguments or its batch have them."""
    data: Any = None if event.batch is None else event.batch.data
    named: Mapping[str, Any] = {**(data if isinstance(data, Mapping) else {}), **event.tensors}
    found = next((named[name] for name in LABELS if is_dense(named.get(name))), None)
    if found is None and isinstance(data, (list, tuple)) and len(data) >= 2 and is_dense(data[-1]):
        found = data[-1]
    return None if found is None else found.detach()


def judged(number: Number, known: Known) -> Round:
    """Which formulas, right and mistaken, give a number to all of its digits."""
    kind = kind_of(number.name)
    like = None if kind is None else LIKE.get(kind, frozenset({kind}))
    right, wrong = known.right, known.wrong
    own = next((each.value for each in right if each.kind == kind), None)
    if own is not None and HELD_OUT.search(number.name):
        trained = (each for each in known.trained if each.kind == kind)
        wrong = [*wrong, *(Mistake(each.kind, each.formula, each.value, "rows", own, each.steps) for each in trained)]
    else:
        right = [*right, *known.trained]
    fitting = [each for each in right if like is None or each.kind in like]
    found = frozenset(each.formula for each in fitting if _gives(each.value, each.kind, number))
    average = next((each for each in AVERAGES if each in number.name), None)
    if average is not None and kind in ("f1", "precision", "recall"):
        meant = [each for each in fitting if each.formula == formula(average)]
        wrong = [*wrong, *_other_averages(fitting, average)]
        fitting = meant or fitting
        found = frozenset(each.formula for each in fitting if _gives(each.value, each.kind, number))
    if all(each.over == "agrees" for each in found) and any(
        each.group == "taken" and each.kind == kind and _gives(each.value, each.kind, number) for each in wrong
    ):
        found = frozenset()  # what the script compared is the mistake
    told: dict[str, tuple[Mistake, float]] = {}
    named = kind is not None and known.whole and not OTHERS.search(number.name)
    of_kind = [each for each in wrong if each.kind == kind] if named else []
    alike = Counter(key for key, _ in {(each.formula.key, each.value) for each in of_kind})
    for value in of_kind:
        if _gives(value.value, value.kind, number):
            key = value.formula.key
            digits = _digits(number, value.steps) - math.log10(alike[key])  # any of the classes would do
            told[key] = value, 0.0 if found else max(0.0, digits)
    own = known.fresh and (known.hits or HELD_OUT.search(number.name) is not None)
    return Round(found, told, len({each.value for each in of_kind}), own)


def _other_averages(found: list[Value], average: str) -> Iterator[Mistake]:
    """What the other averages over the classes come to, where one is named."""
    right = next((each.value for each in found if each.formula.kind == average), None)
    for value in found if right is not None else ():
        if value.formula.kind in AVERAGES and value.formula.kind != average and right is not None:
            other = formula("other-average", value.formula)
            yield Mistake(value.kind, other, value.value, "name", right, value.steps)


def _gives(value: float, kind: str, number: Number) -> bool:
    """Whether a number is this value, to all of its digits; of a rate it may be in per cent."""
    if not math.isfinite(value):
        return False
    scales = (100.0,) if number.percent else (1.0, 100.0) if kind in RATES else (1.0,)
    off = number.half * (1 + 1e-9)
    return any(abs(value * scale - number.value) <= off + ROUNDING * abs(number.value) for scale in scales)


def _digits(number: Number, steps: float) -> float:
    """Number of digits in which a number says which value it is."""
    known = math.log10(max(abs(number.value), number.half) / number.half / 2) if number.value else 0.0
    return max(0.0, min(known, MOST_DIGITS, math.log10(steps + 1)))


def _explained(place: NumberSeries, key: str) -> list[tuple[Mistake, float]]:
    """The rounds of a number, where one mistaken formula gives it in all of them."""
    rounds = place.rounds[1:] if key == BEFORE.key else place.rounds  # nothing is before the first
    return [each.wrong[key] for each in rounds] if all(key in each.wrong for each in rounds) else []


def keys_of_mistakes(places: list[NumberSeries]) -> set[str]:
    """The keys of mistaken formulas that explain so many digits of the numbers of one line that it is no chance."""
    digits: dict[str, float] = {}
    of_last = 0.0
    last: set[str] = set()
    for place in places:
        by_key = {key: _evidence(place, key) for key in {each for told in place.rounds for each in told.wrong}}
        for key, sure in by_key.items():
            digits[key] = digits.get(key, 0.0) + sure
        those = {key: sure for key, sure in by_key.items() if sure and OF_LAST_BATCH.fullmatch(key)}
        if those:
            of_last += max(those.values()) + (OWN if not of_last and all(each.own for each in place.rounds) else 0.0)
            last |= those.keys()
    formulas = max((each.formulas for place in places for each in place.rounds), default=1)
    enough = {key for key, sure in digits.items() if sure >= EVIDENCE + math.log10(2 * max(1, formulas))}
    return enough | (last if of_last >= EVIDENCE + math.log10(2) else set())


def _evidence(place: NumberSeries, key: str) -> float:
    """Digits of the rounds of a number that one mistaken formula gives."""
    explained = _explained(place, key)
    sure = [(each, digits) for each, digits in explained if digits]
    own = max(each.denominator for each, _ in sure) if len(sure) > 1 else 1  # once it may be as many other rows
    return sum(digits for _, digits in sure) + math.log10(own)


def outcome(place: NumberSeries, enough: set[str]) -> NumberReported | None:
    """What the rounds of a number come to, where one formula explains all of them."""
    told = NumberReported(name=place.name, number=place.value, rounds=len(place.rounds), where=place.where)
    known = kind_of(place.name) is not None
    if all(each.right for each in place.rounds):
        latest = place.rounds[-1].right
        always = set.intersection(*({each.key for each in told.right} for told in place.rounds))
        same = [each for each in latest if each.key in always]
        return replace(told, formula=min(same or latest, key=lambda each: each.rank)) if known else None
    explained = [[each for each, digits in _explained(place, key) if digits] for key in enough]
    alone = min(filter(None, explained), key=lambda mistakes: mistakes[-1].formula.rank, default=[])
    if alone:
        last = alone[-1]
        off = max(abs(each.value - each.right) / each.noise if each.noise else math.inf for each in alone)
        return replace(told, mistake=last.formula, group=last.group, right=last.right, off=off)
    return told if known else None
