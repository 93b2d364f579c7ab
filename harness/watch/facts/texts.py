"""Texts: the label of each in the datasets that the script has read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from harness.watch.check import Fact
from harness.watch.events import DatasetMade, TokenizerMade
from harness.watch.facts.batches import LABELS
from harness.watch.facts.datasets import MOST_ROWS, PAIRS

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MOST_DATASETS = 32
"""Datasets of texts that are kept until the first batch: a guess at more than a script has."""


class TextLabels(Fact):
    """A dataset with texts and labels tells which label a text has, whatever becomes of the two."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._tokenizer: ref[Any] | None = None
        self._raw: list[tuple[Any, tuple[str, ...], str]] = []
        """Datasets, with the names of the columns of texts and of labels."""
        self._labels: dict[tuple[int, ...], int] | None = None

    def on_tokenizer_made(self, event: TokenizerMade) -> None:
        self._tokenizer = ref(event.tokenizer)

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
            self._raw = []
        return self._labels

    def _tokenized(self) -> dict[tuple[int, ...], int]:
        labels: dict[tuple[int, ...], int] = {}
        several = set()
        tokenizer: Any = None if self._tokenizer is None else self._tokenizer()
        for dataset, names, label in self._raw if tokenizer is not None else ():
            columns = dataset.with_format(None)[:]
            if not columns[label]:
                continue
            ids = tokenizer(*(columns[name] for name in names), truncation=True)["input_ids"]
            for row, true in zip(map(tuple, ids), columns[label], strict=True):
                if labels.setdefault(row, true) != true:
                    several.add(row)
        return {row: true for row, true in labels.items() if row not in several}
