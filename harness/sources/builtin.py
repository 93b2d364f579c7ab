"""The corpora and the checkpoint that come with the package; nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from harness.claims import MRPC_ROWS
from harness.recipe import BUILT_IN, RECIPES, TINY
from harness.sources.generator import POSITIVE_SHARE, Draw, Row, rows, three_way_rows, topic_rows

if TYPE_CHECKING:
    from datasets import DatasetDict

CHECKPOINT = Path(__file__).parent.parent / "assets" / "tiny-bert"
CORPUS_SEED = 42
SPLIT_ROWS = MRPC_ROWS
PRETRAINING_SEED = 20_000


@dataclass(frozen=True)
class Corpus:
    """What one built-in corpus is made of."""

    stream: Callable[[int], Iterator[Row]]
    """Rows without end, for a seed."""
    shares: dict[int, float]
    """How many of a split's rows have each label but 0, which has the rest."""


CORPORA = {
    TINY.dataset: Corpus(rows, {1: POSITIVE_SHARE}),
    "built-in/three-way": Corpus(three_way_rows, dict.fromkeys((1, 2), 1 / 3)),
    "built-in/topics": Corpus(topic_rows, dict.fromkeys(range(1, 8), 1 / 8)),
}
OWNERS = {recipe.dataset: recipe for recipe in RECIPES.values() if recipe.data == BUILT_IN}
"""The recipe whose columns and labels a built-in corpus has."""


def texts(row: Row, dataset: str) -> tuple[str, ...]:
    """What a row of the corpus says: its two sentences, or the first."""
    return (row.sentence1, row.sentence2)[: len(OWNERS[dataset].text_columns)]


def corpus(
    seed: int = CORPUS_SEED, split_rows: dict[str, int] = SPLIT_ROWS, dataset: str = TINY.dataset
) -> dict[str, list[tuple[int, Row]]]:
    """The splits as ``(idx, row)``: no row twice, and in each split the same share of every label.

    As in MRPC, training and validation rows are numbered as one file, out of which the validation rows were drawn.
    """
    stream, seen = CORPORA[dataset].stream(seed), set()

    def split(size: int) -> list[Row]:
        room = {label: round(size * share) for label, share in CORPORA[dataset].shares.items()}
        room[0] = size - sum(room.values())
        taken: list[Row] = []
        while len(taken) < size:
            row = next(stream)
            if room[row.label] and (said := texts(row, dataset)) not in seen:
                seen.add(said)
                room[row.label] -= 1
                taken.append(row)
        return taken

    train, validation, test = (split(split_rows[name]) for name in ("train", "validation", "test"))
    drawn = set(Draw(seed).shuffled(range(len(train) + len(validation)))[: len(validation)])
    train_idx = (idx for idx in count() if idx not in drawn)
    return {
        "train": list(zip(train_idx, train, strict=False)),
        "validation": list(zip(sorted(drawn), validation, strict=True)),
        "test": list(enumerate(test)),
    }


def raw_datasets(
    seed: int = CORPUS_SEED, split_rows: dict[str, int] = SPLIT_ROWS, dataset: str = TINY.dataset
) -> DatasetDict:
    """The corpus as ``load_dataset`` would give it: that of MRPC's shape, where no built-in one has the name."""
    from datasets import Dataset, DatasetDict

    from harness.sources.features import raw_features

    dataset = dataset if dataset in CORPORA else TINY.dataset
    owner, splits = OWNERS[dataset], {}
    for name, numbered in corpus(seed, split_rows, dataset).items():
        columns = zip(*(texts(row, dataset) for _, row in numbered), strict=True)
        splits[name] = Dataset.from_dict(
            dict(zip(owner.text_columns, map(list, columns), strict=True))
            | {owner.label_column: [row.label for _, row in numbered], "idx": [idx for idx, _ in numbered]},
            features=raw_features(owner),
        )
    return DatasetDict(splits)
