"""The corpora and the checkpoint that come with the package; nothing is fetched.

``scripts/corpus.py`` writes the corpora, and ``scripts/pretrain.py`` the checkpoint.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from harness.documented_run.recipe import BUILT_IN, RECIPES, TINY, Recipe

if TYPE_CHECKING:
    from datasets import DatasetDict

_ASSETS = Path(__file__).parent.parent / "assets"
CHECKPOINT = _ASSETS / "tiny-bert"
CORPORA = {recipe.dataset: recipe for recipe in RECIPES.values() if recipe.data == BUILT_IN}
"""The recipe whose columns and labels a built-in corpus has."""


def stored_in(dataset: str) -> Path:
    """The file of a built-in corpus."""
    return _ASSETS / "corpora" / f"{dataset.removeprefix('built-in/')}.tsv.bz2"


def raw_datasets(dataset: str = TINY.dataset) -> DatasetDict:
    """The corpus as ``load_dataset`` would give it: that of MRPC's shape, where no built-in one has the name."""
    dataset = dataset if dataset in CORPORA else TINY.dataset
    with bz2.open(stored_in(dataset), "rt", encoding="utf-8") as file:
        return as_datasets(file, CORPORA[dataset])


def as_datasets(lines: Iterable[str], owner: Recipe) -> DatasetDict:
    """The datasets that lines of split, texts and label, with tabs between them, come to.

    As in MRPC, training and validation rows are numbered as one file, in the order of the lines.
    """
    from datasets import Dataset, DatasetDict

    from harness.documented_run.sources.features import raw_features

    columns = (*owner.text_columns, owner.label_column, "idx")
    splits: dict[str, list[list[str | int]]] = {"train": [], "validation": [], "test": []}
    numbers = {True: count(), False: count()}
    for line in lines:
        split, *texts, label = line.rstrip("\n").split("\t")
        splits[split].append([*texts, int(label), next(numbers[split == "test"])])
    features = raw_features(owner)
    return DatasetDict(
        {
            split: Dataset.from_dict(
                dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)), features=features
            )
            for split, rows in splits.items()
        }
    )
