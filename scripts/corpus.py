"""Write the built-in corpora into the package: what :mod:`scripts.generator` says, as many rows as MRPC has.

    python -m scripts.corpus

Each is a file of ``harness/documented_run/assets/corpora``, as :mod:`harness.documented_run.sources.builtin` reads it.
Tests make smaller ones of other seeds."""

from __future__ import annotations

import bz2
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from harness.documented_run.recipe import TINY
from harness.documented_run.sources.builtin import CORPORA, as_datasets, stored_in
from scripts.generator import POSITIVE_SHARE, Draw, Row, rows, three_way_rows, topic_rows

if TYPE_CHECKING:
    from datasets import DatasetDict

CORPUS_SEED = 42
MRPC_ROWS = {"train": 3668, "validation": 408, "test": 1725}


@dataclass(frozen=True)
class Ingredients:
    """What one built-in corpus is made of."""

    stream: Callable[[int], Iterator[Row]]
    """Rows without end, for a seed."""
    shares: dict[int, float]
    """How many of a split's rows have each label but 0, which has the rest."""


INGREDIENTS = {
    TINY.dataset: Ingredients(rows, {1: POSITIVE_SHARE}),
    "built-in/three-way": Ingredients(three_way_rows, dict.fromkeys((1, 2), 1 / 3)),
    "built-in/topics": Ingredients(topic_rows, dict.fromkeys(range(1, 8), 1 / 8)),
}


def texts(row: Row, dataset: str) -> tuple[str, ...]:
    """What a row of the corpus says: its two sentences, or the first."""
    return (row.sentence1, row.sentence2)[: len(CORPORA[dataset].text_columns)]


def corpus(
    seed: int = CORPUS_SEED, split_rows: dict[str, int] = MRPC_ROWS, dataset: str = TINY.dataset
) -> dict[str, list[tuple[int, Row]]]:
    """The splits as ``(idx, row)``: no row twice, and in each split the same share of every label.

    As in MRPC, training and validation rows are numbered as one file, out of which the validation rows were drawn.
    """
    stream, seen = INGREDIENTS[dataset].stream(seed), set()

    def split(size: int) -> list[Row]:
        room = {label: round(size * share) for label, share in INGREDIENTS[dataset].shares.items()}
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


def lines(seed: int, split_rows: dict[str, int], dataset: str) -> list[str]:
    """A corpus as the lines of its file: training and validation rows in the order of their numbers, then the rest."""
    numbered = [
        (split == "test", idx, "\t".join((split, *texts(row, dataset), str(row.label))))
        for split, made in corpus(seed, split_rows, dataset).items()
        for idx, row in made
    ]
    return [line for _, _, line in sorted(numbered)]


def raw_datasets(seed: int, split_rows: dict[str, int], dataset: str = TINY.dataset) -> DatasetDict:
    """A corpus of another seed and size, as ``load_dataset`` would give it."""
    return as_datasets(lines(seed, split_rows, dataset), CORPORA[dataset])


def main() -> None:
    """Write each corpus."""
    for dataset in CORPORA:
        text = "".join(f"{line}\n" for line in lines(CORPUS_SEED, MRPC_ROWS, dataset))
        stored_in(dataset).parent.mkdir(exist_ok=True)
        stored_in(dataset).write_bytes(bz2.compress(text.encode()))


if __name__ == "__main__":
    main()
