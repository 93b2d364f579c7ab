"""Texts: the label of each in the datasets that the script has read, and those that were tokenized last."""

from __future__ import annotations

from itertools import compress
from types import NoneType
from typing import TYPE_CHECKING, Any
from weakref import ref

from harness.watch.bus import Recogniser
from harness.watch.events import DatasetMade, Encode, TokenizerMade
from harness.watch.facts.batches import LABELS
from harness.watch.facts.datasets import MOST_ROWS, PAIRS
from harness.watch.facts.tokens import copied, texts_given

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MOST_DATASETS = 32
"""Datasets of texts that are kept until the first batch: more than a script has. Neither half nor double of it changes
a verdict of the corpus."""


MOST_ENCODED = 256
"""Rows of a call of the tokenizer that are kept until the next batch: by reasoning, a larger one makes a data set."""


class LatestEncoded(Recogniser):
    """What the latest call of the tokenizer was given and made, as far as tensors are looked at."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._rows: list[tuple[list[str], list[int]]] = []

    def on_encode(self, event: Encode) -> None:
        self._rows = []
        if self.monitor.is_sampled() and event.encodings and len(event.encodings) <= MOST_ENCODED:
            given = [[text for text in texts if isinstance(text, str)] for texts in texts_given(event)]
            if len(given) == len(event.encodings):
                self._rows = [(texts, each.ids) for texts, each in zip(given, event.encodings, strict=True)]

    def taken(self) -> list[tuple[list[str], list[int]]]:
        """The texts and the ids of each row, once."""
        rows, self._rows = self._rows, []
        return rows


class TextLabels(Recogniser):
    """A dataset with texts and labels tells which label a text has, whatever becomes of the two."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._tokenizer: ref[Any] | None = None
        self._raw: list[tuple[Any, tuple[str, ...], str]] = []
        """Datasets, with the names of the columns of texts and of labels."""
        self._tokens: dict[Any, set[tuple[int, ...]]] = {}
        """What the script's own calls of the tokenizer made of a text or a pair, without padding."""
        self._labels: dict[tuple[int, ...], int] | None = None

    def on_tokenizer_made(self, event: TokenizerMade) -> None:
        self._tokenizer = ref(event.tokenizer)

    def on_encode(self, event: Encode) -> None:
        if self._labels is not None or not self._raw or not event.encodings or event.overflows:
            return
        for texts, encoding in zip(texts_given(event), event.encodings, strict=False):
            if len(self._tokens) >= MOST_ROWS or not all(isinstance(each, (str, NoneType)) for each in texts):
                return
            self._tokens.setdefault(texts, set()).add(_without_padding(encoding))

    def on_dataset_made(self, event: DatasetMade) -> None:
        dataset = event.dataset
        if self._labels is None and len(self._raw) < MOST_DATASETS and dataset.num_rows <= MOST_ROWS:
            features = dataset.features
            texts = [
                name for name, each in features.items() if getattr(each, "dtype", "") in ("string", "large_string")
            ]
            label = next((name for name in LABELS if getattr(features.get(name), "dtype", "") == "int64"), None)
            pair = next((pair for pair in PAIRS if set(pair) <= set(texts)), tuple(texts) if len(texts) == 1 else None)
            if label is not None and pair is not None and "input_ids" not in features:
                self._raw.append((dataset, pair, label))

    def by_tokens(self) -> dict[tuple[int, ...], int]:
        """The label of each text, by its tokens; texts with several labels are left out."""
        if self._labels is None:
            self._labels = self._tokenized()
            self._raw, self._tokens = [], {}
        return self._labels

    def _tokenized(self) -> dict[tuple[int, ...], int]:
        labels: dict[tuple[int, ...], int] = {}
        several = set()
        tokenizer: Any = None if self._tokenizer is None else self._tokenizer()
        asked: Any = None
        for dataset, names, label in self._raw if tokenizer is not None else ():
            columns = dataset.with_format(None)[:]
            first, *second = (columns[name] for name in names)
            texts = list(zip(first, second[0] if second else [None] * len(first), strict=True))
            unknown = [each for each in texts if each not in self._tokens]
            if unknown and asked is None:
                asked = copied(tokenizer)
            if unknown and asked is not None:
                self._tokenize(unknown, asked)
            for each, true in zip(texts, columns[label], strict=True):
                for row in self._tokens.get(each, ()):
                    if labels.setdefault(row, true) != true:
                        several.add(row)
        return {row: true for row, true in labels.items() if row not in several}

    def _tokenize(self, texts: list[tuple[str, str | None]], tokenizer: Any) -> None:
        """Add the tokens of texts that the script did not tokenize here: they were cached, or done by workers."""
        first, second = ([*each] for each in zip(*texts, strict=True))
        given = [first] if second[0] is None else [first, second]
        for each, ids in zip(texts, tokenizer(*given, truncation=True)["input_ids"], strict=True):
            self._tokens[each] = {tuple(ids)}


def _without_padding(encoding: Any) -> tuple[int, ...]:
    ids, mask = encoding.ids, encoding.attention_mask
    return tuple(compress(ids, mask) if 0 in mask else ids)
