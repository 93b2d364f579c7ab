"""Labels of rows: those that come in a batch, beside what the dataset has for the row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch

from harness.torch_objects import is_dense
from harness.watch.bus import Recogniser
from harness.watch.events import Batch, End, Fact
from harness.watch.facts.datasets import plain
from harness.watch.facts.texts import LatestEncoded, TextLabels
from harness.watch.run.batches import LABELS, labels_of, tensors_in
from harness.watch.run.rows import numbers

COMPARED_BATCHES = 16
"""Batches whose labels are compared with those of their samples, and of a pass those that are compared with the texts.
By reasoning, what is enough to see a collate function at work."""

ENOUGH_ROWS = 24
"""Rows whose text is known that must have been seen."""


class LabelsBesideSamples(Fact):
    """The labels of a batch, beside those of the samples that were collated. ``where`` is the batch."""

    needs = "labels that the dataset gives with its rows"
    rows: int
    swapped: int = 0
    """Rows with the label of another row of the batch, where it has the labels of the samples in another order."""


class LabelsBesideTexts(Fact):
    """The labels of a loader's batches so far, beside those that the dataset has for their texts."""

    rows: int
    wrong: int
    """Rows with another label than most with their text's label have."""


class CollatedByWorkers(Fact):
    """A run is over some of whose batches workers made, so that their samples were not seen."""


class LabelsOfRows(Recogniser):
    makes = (LabelsBesideSamples, LabelsBesideTexts, CollatedByWorkers)

    def begin(self) -> None:
        self._texts, self._encoded = self.fact(TextLabels), self.fact(LatestEncoded)
        self._compared = 0
        """Batches that were compared with their samples."""
        self._by_workers = False
        self._seen: WeakKeyDictionary[Any, Counter[tuple[int, int]]] = WeakKeyDictionary()
        """Loader to how often a text of one label came with another."""

    def on_batch(self, event: Batch) -> None:
        self._by_workers |= event.of.loader.num_workers > 0
        if self._compared < COMPARED_BATCHES and event.samples is not None:
            self._compare_with_samples(event)
        if event.of.number == 1 and event.of.batches <= COMPARED_BATCHES:
            self._compare_with_texts(event)

    def on_end(self, event: End) -> None:
        if self._by_workers:
            self.tell(CollatedByWorkers())

    def _compare_with_samples(self, event: Batch) -> None:
        labels, (pairs, content) = labels_of(event.data), self._rows(event)
        if pairs is None or content is None or labels is None or not len(content) == len(labels) == len(pairs):
            return
        self._compared += 1
        known = dict(pairs)
        # Rows that cannot be told apart say nothing.
        wrong = [
            i for i, row in enumerate(content) if len(known) == len(pairs) and row in known and known[row] != labels[i]
        ]
        same = Counter(known.values()) == Counter(labels)
        swapped = len(wrong) if same else 0
        self.tell(LabelsBesideSamples(rows=len(content), swapped=swapped, where=event.where))

    def _rows(self, event: Batch) -> tuple[list[tuple[bytes, int]] | None, list[bytes] | None]:
        """Content and label of each sample, and the content of each row of the batch."""
        pairs, content = _pairs(event.samples), _content(event.data)
        encoded = self._encoded.taken()
        if pairs is not None or content is None or [numbers(ids) for _, ids in encoded] != content:
            return pairs, content
        texts = [frozenset(given) for given, _ in encoded]  # the collate function tokenizes them, in this order
        return _labelled_texts(event.samples, texts), [_key_of_texts(each) for each in texts]

    def _compare_with_texts(self, event: Batch) -> None:
        labels = labels_of(event.data)
        rows = None if labels is None else _tokens(event.data)
        if labels is None or rows is None or len(labels) != len(rows):
            return
        counts = self._seen.setdefault(event.of.loader, Counter())
        truth = self._texts.by_tokens()
        counts.update((truth[row], label) for row, label in zip(rows, labels, strict=True) if row in truth)
        total = counts.total()
        if total < ENOUGH_ROWS:
            return
        commonest: dict[int, int] = {}
        for (true, _), times in counts.items():
            commonest[true] = max(commonest.get(true, 0), times)
        wrong = total - sum(commonest.values())  # a mapping of one label to another is none
        self.tell(LabelsBesideTexts(rows=total, wrong=wrong, where=event.where))


def _tokens(data: Any) -> list[tuple[int, ...]] | None:
    """The tokens of each row of a batch, without its padding."""
    named = dict(tensors_in(data))
    ids = next((value for name, value in named.items() if name.endswith("input_ids")), None)
    mask = next((value for name, value in named.items() if name.endswith("attention_mask")), None)
    if ids is None or mask is None or mask.shape != ids.shape:
        return None
    return [tuple(row[kept].tolist()) for row, kept in zip(ids, mask.bool(), strict=True)]


def _content(data: Any) -> list[bytes] | None:
    """The rows of a batch, as :func:`_pairs` names those of the samples."""
    if isinstance(data, Mapping):
        ids: Any = data.get("input_ids")
    else:
        ids = data[0] if isinstance(data, (list, tuple)) and torch.is_tensor(data[0]) else None
    if not is_dense(ids) or ids.dim() < 2:
        return None
    return [numbers(row) for row in ids]


def _pairs(samples: Any) -> list[tuple[bytes, int]] | None:
    """Content and label of the rows that the dataset gave."""
    found = []
    for sample in samples if isinstance(samples, (list, tuple)) else ():
        if isinstance(sample, Mapping):
            ids = sample.get("input_ids", None)
            label = next((sample[name] for name in LABELS if name in sample), None)
        elif isinstance(sample, (list, tuple)) and len(sample) >= 2:
            ids, label = sample[0], sample[-1]
        else:
            return None
        label = plain(label)
        if not (isinstance(ids, list) or hasattr(ids, "tolist")) or not isinstance(label, int):
            return None
        try:
            found.append((numbers(ids), int(label)))
        except ValueError:
            return None
    return found or None


def _key_of_texts(texts: frozenset[str]) -> bytes:
    return repr(sorted(texts)).encode()


def _labelled_texts(samples: Any, texts: list[frozenset[str]]) -> list[tuple[bytes, int]] | None:
    """Pairs as :func:`_pairs` makes them, of samples whose texts the collate function tokenizes."""
    found = []
    for sample in samples if isinstance(samples, (list, tuple)) else ():
        if isinstance(sample, Mapping):
            values, label = list(sample.values()), next((sample[name] for name in LABELS if name in sample), None)
        elif isinstance(sample, (list, tuple)) and sample:
            values, label = list(sample), sample[-1]
        else:
            return None
        own = {value for value in values if isinstance(value, str)}
        content = next((_key_of_texts(each) for each in texts if each and each <= own), None)
        if content is None or not isinstance(plain(label), int):
            return None
        found.append((content, int(plain(label))))
    return found or None
