"""The corpus and the checkpoint that come with the package; nothing is fetched."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from harness.claims import MRPC_ROWS
from harness.recipe import Recipe
from harness.sources.generator import POSITIVE_SHARE, Draw, Row, rows

if TYPE_CHECKING:
    from datasets import DatasetDict

CHECKPOINT = Path(__file__).parent.parent / "assets" / "tiny-bert"
CORPUS_SEED = 42
SPLIT_ROWS = MRPC_ROWS
PRETRAINING_SEED = 20_000


def corpus(seed: int = CORPUS_SEED, split_rows: dict[str, int] = SPLIT_ROWS) -> dict[str, list[tuple[int, Row]]]:
    """The splits as ``(idx, row)``: no row twice, and in each split the same share of positive rows.

    As in MRPC, training and validation rows are numbered as one file, out of which the validation rows were drawn.
    """
    stream, seen = rows(seed), set()

    def split(size: int) -> list[Row]:
        room = {1: round(size * POSITIVE_SHARE)}
        room[0] = size - room[1]
        taken: list[Row] = []
        while len(taken) < size:
            row = next(stream)
            if room[row.label] and (pair := (row.sentence1, row.sentence2)) not in seen:
                seen.add(pair)
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


def raw_datasets(seed: int = CORPUS_SEED, split_rows: dict[str, int] = SPLIT_ROWS) -> DatasetDict:
    """The corpus as ``load_dataset("glue", "mrpc")`` would give it."""
    from datasets import Dataset, DatasetDict

    from harness.sources.features import raw_features

    return DatasetDict(
        {
            name: Dataset.from_dict(
                {
                    "sentence1": [row.sentence1 for _, row in numbered],
                    "sentence2": [row.sentence2 for _, row in numbered],
                    "label": [row.label for _, row in numbered],
                    "idx": [idx for idx, _ in numbered],
                },
                features=raw_features(Recipe()),
            )
            for name, numbered in corpus(seed, split_rows).items()
        }
    )
