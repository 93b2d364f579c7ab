"""Sample ledger: which rows each pass consumed, in which order, with which labels."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)

from harness.watch.events_old import Backward, Batch, Pass
from harness.watch.observer import Invariant, Observer, Statement

PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("question", "context"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
)
"""Columns that belong together, as GLUE's and other corpora name them."""

LABELS = ("labels", "label", "target", "targets", "y")
NOT_CONTENT = ("idx", "id", "index", "guid", "__index_level_0__")

COMPARED = 3
"""So many batches of a pass tell whether it goes in the same order as the one before."""

MOST_ROWS = 20_000
"""Datasets up to so many rows are compared row by row."""

MOST_RAW = 32
"""So many datasets of texts are kept until the first batch."""

MATCHED, WRONG = 24, 0.25
"""So many rows whose text is known must have been seen, and so large a part of them have another's label. Less may be
noise or pseudo-labels that somebody put there."""

FEW = 0.2
"""Share of different rows in a pass below which the dataset gives the same ones again and again."""


@dataclass
class Order:
    """How a pass began."""

    of: Pass
    drawn: list[Any] = field(default_factory=list)
    content: list[bytes] = field(default_factory=list)
    rows: Counter[bytes] = field(default_factory=Counter)
    where: str | None = None


class Rows(Invariant):
    checks = (
        Statement("rows::another-order-each-epoch", "Each epoch goes through the training rows in another order."),
        Statement("rows::every-row-once", "Each epoch goes through all training rows, each once."),
        Statement("rows::evaluation-rows-unseen", "No row of the evaluation is trained on."),
        Statement("rows::every-evaluation-row-once", "An evaluation counts each of its rows once."),
        Statement("rows::labels-of-their-rows", "A row keeps its label on the way into its batch."),
        Statement("rows::complete-epochs", "Each epoch goes through all training rows.", severity="warning"),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.orders: WeakKeyDictionary[Pass, Order] = WeakKeyDictionary()
        self.epochs: list[Order] = []
        self.passes: list[Pass] = []
        self.aligned = 0
        self.tokenizers: ref[Any] | None = None
        self.raw: list[tuple[Any, tuple[str, ...], str]] = []
        """Datasets of texts with labels, and the names of the columns."""
        self.truth: dict[tuple[int, ...], int] | None = None
        self.seen_labels: WeakKeyDictionary[Any, Counter[tuple[int, int]]] = WeakKeyDictionary()
        """Of each loader: how often a text of one label came with another."""
        self.ended: Pass | None = None
        """The latest pass, if it has ended and no other has begun."""
        self.again = 0
        self.again_of: Pass | None = None

    def batch(self, event: Batch) -> None:
        order = self.orders.get(event.of)
        if order is None:
            self.orders[event.of] = order = Order(event.of, where=event.where)
        if len(order.content) < COMPARED:
            order.drawn.append(event.indices)
            order.content.append(_digest(event.data))
        if len(order.rows) + order.of.batches < 1024 and isinstance(event.indices, (list, tuple)):
            order.rows.update(rows_in(event.data, len(event.indices)))
        if self.aligned < 16 and event.samples is not None:
            self._labels(event)
        if event.of.number == 1 and event.of.batches <= 16:
            self._against_the_texts(event)

    def pass_ends(self, event: Pass) -> None:
        self.passes.append(event)
        order = self.orders.get(event)
        if event.trains and order is not None:
            self._same_order(event, order)
            self._same_rows(event, order)
            self.epochs.append(order)
        if event.exhausted:
            self._finish()
            self.ended = event
        elif not event.trains and event.forwards:
            self._evaluation_rows(event)

    def pass_begins(self, event: Pass) -> None:
        self._finish()

    def ends(self, _: None) -> None:
        self._finish()
        if self.observer.complete:
            self._left_early()
            self._evaluation_left_early()
        self._unseen()

    def _finish(self) -> None:
        """What was taken ahead of its use has been used by now."""
        if self.ended is not None and not self.ended.trains and self.ended.forwards:
            self._evaluation_rows(self.ended)
        self.ended = None

    def backward(self, event: Backward) -> None:
        """A loop that goes on with the batches of a pass that has ended keeps them."""
        if self.ended is None or event.inside_step or event.batch is None or event.batch.of is not self.ended:
            return
        self.again = self.again + 1 if self.ended is self.again_of else 1
        self.again_of = self.ended
        if self.ended.batches >= 2 and self.again > 2 * self.ended.batches:
            self.found(
                "rows::another-order-each-epoch",
                expected="another order in each epoch",
                observed=f"the {self.ended.batches} batches of one pass are trained on again and again",
                hint="Go through the DataLoader itself in each epoch; itertools.cycle and lists keep the batches of "
                "the first.",
                where=event.where,
                update=self.observer.update,
            )

    # Order

    def _same_order(self, event: Pass, order: Order) -> None:
        stream = _shuffled_stream(event.dataset)
        if not self.epochs or event.batches < 2 or event.planned == 1 or not (stream or _torchs_own(event.loader)):
            return
        before = self.epochs[-1]
        if before.of.dataset is event.dataset and not stream:
            same = before.drawn == order.drawn
        else:
            same = before.content == order.content
        if not same or len(order.content) < 2:
            return
        sampler = _sampler(event.loader)
        hint = "Give the training's DataLoader shuffle=True."
        if isinstance(sampler, DistributedSampler):
            hint = "Call sampler.set_epoch(epoch) at the beginning of each epoch."
        elif stream:
            hint = "Call dataset.set_epoch(epoch) at the beginning of each epoch."
        elif isinstance(sampler, RandomSampler):
            hint = "Do not seed the generator anew for each epoch."
        self.found(
            "rows::another-order-each-epoch",
            expected="another order in each epoch",
            observed=f"the rows come in the order of the epoch before ({type(sampler).__name__})",
            hint=hint,
            where=order.where,
            update=self.observer.updates_made,
        )

    def _same_rows(self, event: Pass, order: Order) -> None:
        total = sum(order.rows.values())
        workers = event.loader.num_workers
        if total < 32:
            return
        own = type(event.dataset).__module__.partition(".")[0] not in ("datasets", "torch", "builtins")
        twice = own and event.exhausted and not event.shortened and min(order.rows.values()) >= 2
        repeated = len(order.rows) <= FEW * total or twice
        by_workers = (
            workers > 1
            and isinstance(event.dataset, torch.utils.data.IterableDataset)
            and all(count % workers == 0 for count in order.rows.values())
            and event.exhausted
        )
        if not repeated and not by_workers:
            return
        self.found(
            "rows::every-row-once",
            expected="another row at each place of the dataset",
            observed=f"{total} rows of an epoch are {len(order.rows)} different ones"
            + (f", each given by all {workers} workers" if by_workers else ""),
            hint="Split an IterableDataset over its workers (get_worker_info)."
            if by_workers
            else "Look at the dataset's __getitem__ and at the indices that select from it.",
            where=order.where,
            update=self.observer.updates_made,
        )

    def _left_early(self) -> None:
        training = [each for each in self.passes if each.trains]
        self._begun_anew(training)
        self._skipped(training)
        if len(training) < 3:
            return
        early = [each for each in training if not each.exhausted and not each.shortened]
        if len(early) < len(training) or len({each.batches for each in early}) > 1 or early[0].batches < 2:
            return
        planned, window = early[0].planned, early[0].batches / max(1, early[0].updates)
        if planned is None or early[0].batches > planned - window:
            return  # all of them, but for a window that would not be full
        sequential = isinstance(_sampler(early[0].loader), SequentialSampler)
        self.found(
            "rows::every-row-once" if sequential else "rows::complete-epochs",
            expected=f"{planned} batches an epoch",
            observed=f"each epoch is left after {early[0].batches}"
            + (", so the rows behind them are never trained on" if sequential else ""),
            hint="Take out the break, unless epochs are meant to be parts of the data.",
            where=early[0].where,
            update=self.observer.updates_made,
        )

    def _begun_anew(self, training: list[Pass]) -> None:
        """A loop that takes one batch of each pass begins a new one for each update."""
        single = [each for each in training if each.batches == 1 and not each.exhausted and (each.planned or 1) > 1]
        if len(single) >= 4 and len(single) > len(training) / 2:
            self.found(
                "rows::every-row-once",
                expected="passes over all batches",
                observed=f"{len(single)} passes were begun and left after one batch",
                hint="Write for batch in loader; next(iter(loader)) begins a new pass each time.",
                where=single[0].where,
                update=2,
            )

    def _skipped(self, training: list[Pass]) -> None:
        skipped = [_skips(each.loader) for each in training]
        if len(training) >= 2 and all(skipped):
            self.found(
                "rows::every-row-once",
                expected="all batches in each epoch",
                observed=f"the first {skipped[-1]} of them are skipped in each",
                hint="skip_first_batches is for the epoch that is resumed only.",
                where=training[-1].where,
                update=self.observer.updates_made,
            )

    # Evaluation

    def _evaluation_rows(self, event: Pass) -> None:
        loader, dataset = event.loader, event.dataset
        expected = "each row of the evaluation once"
        size = _length(dataset)
        batches = _batches(loader)
        dropped = size % batches.batch_size if size and getattr(batches, "drop_last", False) else 0
        if dropped:
            self.found(
                "rows::every-evaluation-row-once",
                expected=expected,
                observed=f"drop_last leaves out {dropped} of {size} rows",
                hint="Leave drop_last out of the evaluation's DataLoader.",
                where=event.where,
            )
        elif event.exhausted and 2 <= event.forwards < event.batches:
            self.found(
                "rows::every-evaluation-row-once",
                expected=expected,
                observed=f"the model was called for {event.forwards} of {event.batches} batches",
                hint="Look at what lies between DataLoader and model: a prefetcher must give its last batch too.",
                where=event.where,
            )
        elif isinstance(_sampler(loader), RandomSampler) and _sampler(loader).replacement:
            self.found(
                "rows::every-evaluation-row-once",
                expected=expected,
                observed="the rows are drawn with replacement",
                hint="Leave the sampler out of the evaluation's DataLoader.",
                where=event.where,
            )

    def _evaluation_left_early(self) -> None:
        """Evaluations that never come to their end; a look at a batch before the training is none."""
        evaluations = [each for each in self.passes if not each.trains and each.forwards]
        for loader in {id(each.loader): each.loader for each in evaluations}.values():
            mine = [each for each in evaluations if each.loader is loader]
            trains = any(each.trains and each.loader is loader for each in self.passes)
            last = mine[-1]
            if trains or not last.made or any(each.exhausted or each.shortened for each in mine):
                continue
            if last.planned and last.forwards < last.planned:
                self.found(
                    "rows::every-evaluation-row-once",
                    expected=f"an evaluation of all {last.planned} batches",
                    observed=f"it is left after {last.forwards}",
                    hint="Take out the break or return inside the loop.",
                    where=last.where,
                )

    def _unseen(self) -> None:
        trained = self._datasets(each for each in self.passes if each.trains)
        evaluated = self._datasets(each for each in self.passes if not each.trains and each.forwards)
        scored = [each for each in evaluated if not any(each.of.loader is t.of.loader for t in trained)]
        models = {each.of.model for each in trained}
        overlaps = []
        for each in scored:
            # Another model's rows are another fold's; a model that was only loaded may be any of them.
            its = [t for t in trained if t.of.model == each.of.model or each.of.model not in models]
            overlaps.append((each, *_overlap(its, each)))
        clean = [each for each, rows, size in overlaps if not rows]
        for each, rows, size in overlaps:
            if not rows or (rows == size and clean):
                continue  # the training rows are evaluated beside others
            what = "all" if rows == size else str(rows)
            self.found(
                "rows::evaluation-rows-unseen",
                expected="an evaluation on rows that were not trained on",
                observed=f"{what} of its {size} rows are training rows",
                hint="Evaluate on the validation split; split the rows once, before anything else.",
                where=each.of.where,
            )

    def _datasets(self, passes: Iterable[Pass]) -> list[_Of]:
        found: dict[tuple[int, Any], _Of] = {}
        for each in passes:
            order = self.orders.get(each)
            rows = Counter() if order is None else order.rows
            found.setdefault((id(each.loader), each.model), _Of(each, _base(each.dataset), rows))
        return list(found.values())

    # Labels

    def tokenizer(self, tokenizer: Any) -> None:
        self.tokenizers = ref(tokenizer)

    def dataset(self, dataset: Any) -> None:
        """A dataset with texts and labels tells which label a text has, whatever becomes of the two."""
        if self.truth is None and len(self.raw) < MOST_RAW and dataset.num_rows <= MOST_ROWS:
            features = dataset.features
            texts = [
                name for name, each in features.items() if getattr(each, "dtype", "") in ("string", "large_string")
            ]
            label = next((name for name in LABELS if getattr(features.get(name), "dtype", "") == "int64"), None)
            pair = next((pair for pair in PAIRS if set(pair) <= set(texts)), tuple(texts) if len(texts) == 1 else None)
            if label is not None and pair is not None and "input_ids" not in features:
                self.raw.append((dataset, pair, label))

    def _true_labels(self) -> dict[tuple[int, ...], int]:
        """The label of each text, by its tokens; texts with several labels are left out."""
        if self.truth is None:
            self.truth = {}
            tokenizer: Any = None if self.tokenizers is None else self.tokenizers()
            several = set()
            for dataset, names, label in self.raw if tokenizer is not None else ():
                columns = dataset.with_format(None)[:]
                if not columns[label]:
                    continue
                ids = tokenizer(*(columns[name] for name in names), truncation=True)["input_ids"]
                for row, true in zip(map(tuple, ids), columns[label], strict=True):
                    if self.truth.setdefault(row, true) != true:
                        several.add(row)
            for row in several:
                del self.truth[row]
            self.raw = []
        return self.truth

    def _against_the_texts(self, event: Batch) -> None:
        labels = labels_of(event.data)
        named = dict(tensors_in(event.data))
        ids = next((value for name, value in named.items() if name.endswith("input_ids")), None)
        mask = next((value for name, value in named.items() if name.endswith("attention_mask")), None)
        if labels is None or ids is None or mask is None or mask.shape != ids.shape or len(labels) != len(ids):
            return
        rows = [tuple(row[kept].tolist()) for row, kept in zip(ids, mask.bool(), strict=True)]
        counts = self.seen_labels.setdefault(event.of.loader, Counter())
        truth = self._true_labels()
        counts.update((truth[row], label) for row, label in zip(rows, labels, strict=True) if row in truth)
        total = sum(counts.values())
        if total < MATCHED:
            return
        commonest: dict[int, int] = {}
        for (true, _), times in counts.items():
            commonest[true] = max(commonest.get(true, 0), times)
        wrong = total - sum(commonest.values())  # a mapping of one label to another is none
        if wrong > WRONG * total:
            self.found(
                "rows::labels-of-their-rows",
                expected="the label that the dataset has for the text",
                observed=f"{wrong} of {total} rows have another row's",
                hint="Look at what puts texts and labels together: shuffling one of them, an index that is off by one, "
                "the order in a collate function.",
                where=event.where,
                update=self.observer.update,
            )

    def _labels(self, event: Batch) -> None:
        pairs = _pairs(event.samples)
        content, labels = _content(event.data), labels_of(event.data)
        if (
            pairs is None
            or content is None
            or labels is None
            or len(content) != len(pairs)
            or len(labels) != len(pairs)
        ):
            return
        self.aligned += 1
        known = dict(pairs)
        if len(known) < len(pairs):
            return  # rows that cannot be told apart
        wrong = [i for i, row in enumerate(content) if row in known and known[row] != labels[i]]
        if wrong and Counter(known.values()) == Counter(labels):
            self.found(
                "rows::labels-of-their-rows",
                expected="the label that the dataset gives for the row",
                observed=f"{len(wrong)} of {len(content)} rows of a batch have the label of another row",
                hint="Look at the collate function: ids and labels must be put in the same order.",
                where=event.where,
                update=self.observer.update,
            )


def _sampler(loader: Any) -> Any:
    """The sampler that draws rows, behind samplers that make batches of them."""
    return getattr(_batches(loader), "sampler", None) or getattr(loader, "sampler", None)


def _batches(loader: Any) -> Any:
    """The batch sampler, inside Accelerate's shards of it."""
    batches = getattr(loader, "batch_sampler", None)
    while batches is not None and hasattr(batches, "batch_sampler"):
        batches = batches.batch_sampler
    return batches


def _skips(loader: Any) -> int:
    """How many batches Accelerate leaves out at the beginning."""
    batches = getattr(loader, "batch_sampler", None)
    while batches is not None and not hasattr(batches, "skip_batches"):
        batches = getattr(batches, "batch_sampler", None)
    return int(getattr(batches, "skip_batches", 0))


def _torchs_own(loader: Any) -> bool:
    """Whether nobody wrote a sampler of their own, which may go in any order on purpose."""
    batches = _batches(loader)
    if batches is not None and type(batches) is not BatchSampler:
        return False
    known = (SequentialSampler, RandomSampler, DistributedSampler, list, tuple, range)
    sampler = _sampler(loader)
    return isinstance(sampler, known) and not isinstance(loader.dataset, torch.utils.data.IterableDataset)


def _shuffled_stream(dataset: Any) -> bool:
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


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except TypeError:
        return None


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def tensors_in(data: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if torch.is_tensor(data):
        yield "", data
    elif isinstance(data, Mapping) or hasattr(data, "items"):
        for name, value in data.items():
            yield from ((f"{name}.{inner}" if inner else str(name), each) for inner, each in tensors_in(value))
    elif isinstance(data, (list, tuple)):
        for place, value in enumerate(data):
            yield from ((f"{place}.{name}" if name else str(place), each) for name, each in tensors_in(value))


def _digest(data: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in tensors_in(data):
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.detach().flatten()[:512].tolist()}".encode())
    return digest.digest()


def rows_in(data: Any, drawn: int) -> Iterator[bytes]:
    """A hash of each row, over its tensors without trailing zeros, which padding may have put there."""
    named = [(name, tensor) for name, tensor in tensors_in(data) if tensor.dim() > 0 and name not in NOT_CONTENT]
    if not any(tensor.dim() > 1 for _, tensor in named) or any(len(tensor) > drawn for _, tensor in named):
        return  # not one row of each tensor for each row of the dataset
    columns = [tensor.tolist() for _, tensor in named]
    if len({len(column) for column in columns}) > 1:
        return
    for row in zip(*columns, strict=True):
        text = repr([_stripped(value) for value in row])
        yield hashlib.blake2b(text.encode(), digest_size=8).digest()


def _stripped(value: Any) -> Any:
    if isinstance(value, list) and value and not isinstance(value[0], list):
        end = len(value)
        while end and not value[end - 1]:
            end -= 1
        return value[:end]
    return value


@dataclass
class _Of:
    of: Pass
    base: tuple[int, frozenset[int] | None]
    rows: Counter[bytes]


def _base(dataset: Any) -> tuple[int, frozenset[int] | None]:
    """What a dataset is a part of, and which of its rows; None for all of them."""
    if isinstance(dataset, Subset):
        base, within = _base(dataset.dataset)
        if within is not None:
            return id(dataset), None
        return base, frozenset(int(index) for index in dataset.indices)
    table = getattr(getattr(dataset, "_data", None), "table", None)
    if table is not None and hasattr(dataset, "_indices"):
        if dataset._indices is None:
            return id(table), None
        return id(table), frozenset(dataset._indices.column(0).to_pylist())
    return id(dataset), None


def _overlap(trained: Sequence[_Of], evaluated: _Of) -> tuple[int, int]:
    """So many rows of an evaluation were among those to train on, and so many it has."""
    size = _length(evaluated.of.dataset) or 0
    for each in trained:
        if each.base[0] == evaluated.base[0]:
            of, among = evaluated.base[1], each.base[1]
            rows = (size if among is None else len(among)) if of is None or among is None else len(of & among)
            if rows:
                return rows, size
    mine = _hashes(evaluated.of.dataset)
    if mine is None:
        return _seen_in_both(trained, evaluated), size
    for each in trained:
        theirs = _hashes(each.of.dataset)
        if not theirs:
            continue
        counted = Counter(theirs)
        common = sum(row in counted for row in mine)
        natural = 1 - len(counted) / len(theirs)
        if common >= max(2, 0.02 * len(mine)) and common / len(mine) > 5 * natural:
            return common, size
    return 0, size


def _seen_in_both(trained: Sequence[_Of], evaluated: _Of) -> int:
    """Rows of an evaluation that were in training batches too, where a dataset is of the script's own."""
    mine = evaluated.rows
    for each in trained:
        natural = 1 - len(each.rows) / max(1, sum(each.rows.values()))
        common = sum(row in each.rows for row in mine)
        if common >= max(2, 0.02 * len(mine)) and common / len(mine) > 5 * natural:
            return common
    return 0


def _hashes(dataset: Any) -> list[int] | None:
    """A hash of each row's content; None where a dataset cannot be read without calling the script's own code."""
    size = _length(dataset)
    if not size or size > MOST_ROWS:
        return None
    if isinstance(dataset, Subset):
        inner = _hashes(dataset.dataset)
        return None if inner is None else [inner[int(index)] for index in dataset.indices]
    if isinstance(dataset, TensorDataset):
        columns = [tensor.tolist() for tensor in dataset.tensors]
        return [hash(repr(row)) for row in zip(*columns, strict=True)]
    if hasattr(dataset, "with_format") and hasattr(dataset, "column_names") and hasattr(dataset, "_data"):
        rows = dataset.with_format(None)[:]
        names = sorted(name for name in rows if name.lower() not in NOT_CONTENT)
        return [hash(repr(row)) for row in zip(*(rows[name] for name in names), strict=True)] if names else None
    if isinstance(dataset, (list, tuple)):
        return [hash(repr(_row(row))) for row in dataset]
    return None


def _row(row: Any) -> Any:
    if isinstance(row, Mapping) or hasattr(row, "items"):
        return sorted((str(name), repr(_plain(value))) for name, value in row.items() if name not in NOT_CONTENT)
    if isinstance(row, (list, tuple)):
        return [_plain(value) for value in row]
    return _plain(row)


def labels_of(data: Any) -> list[int] | None:
    if isinstance(data, Mapping) or hasattr(data, "items"):
        found = next((data[name] for name in LABELS if name in data and torch.is_tensor(data[name])), None)
    elif isinstance(data, (list, tuple)) and len(data) >= 2 and torch.is_tensor(data[-1]):
        found = data[-1]
    else:
        found = None
    if found is None or found.dim() != 1 or found.is_floating_point():
        return None
    return [int(label) for label in found.tolist()]


def _content(data: Any) -> list[str] | None:
    """The rows of a batch, as the samples of :func:`_pairs` name them."""
    if isinstance(data, Mapping) or hasattr(data, "items"):
        ids = data.get("input_ids")
    else:
        ids = data[0] if isinstance(data, (list, tuple)) and torch.is_tensor(data[0]) else None
    return None if not torch.is_tensor(ids) or ids.dim() < 2 else [repr(_stripped(row)) for row in ids.tolist()]


def _pairs(samples: Any) -> list[tuple[str, int]] | None:
    """Content and label of the rows that the dataset gave."""
    found = []
    for sample in samples if isinstance(samples, (list, tuple)) else ():
        if isinstance(sample, Mapping) or hasattr(sample, "items"):
            ids = sample.get("input_ids", None)
            label = next((sample[name] for name in LABELS if name in sample), None)
        elif isinstance(sample, (list, tuple)) and len(sample) >= 2:
            ids, label = sample[0], sample[-1]
        else:
            return None
        ids, label = _plain(ids), _plain(label)
        if not isinstance(ids, list) or not isinstance(label, int):
            return None
        found.append((repr(_stripped(ids)), int(label)))
    return found or None
