"""Which label a text has, by the tokens that the script's tokenizer makes of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset

from harness.watch.events import DatasetMade, Encode, TokenizerMade
from harness.watch.facts.texts import TextLabels
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options

TEXTS, OTHERS = ["a", "ab", "abc"], ["x", "y", "z"]


class Letters:
    """A tokenizer of letters, which counts the rows that it is given."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, texts: list[str], pairs: list[str] | None = None, *, truncation: bool) -> dict[str, Any]:
        self.rows += len(texts)
        return {
            "input_ids": [[ord(letter) for letter in text + (pairs or [""] * 9)[i]] for i, text in enumerate(texts)]
        }


def encoded(texts: list[str], padded_to: int = 0) -> list[Any]:
    rows = [[ord(letter) for letter in text] for text in texts]
    return [
        SimpleNamespace(
            ids=row + [0] * (padded_to - len(row)), attention_mask=[1] * len(row) + [0] * (padded_to - len(row))
        )
        for row in rows
    ]


@pytest.mark.parametrize("padded_to", [0, 5])
@pytest.mark.parametrize("seen", [0, 2, 3])
@pytest.mark.parametrize("pairs", [False, True])
def test_what_the_script_tokenized_is_not_tokenized_again(pairs: bool, seen: int, padded_to: int) -> None:
    fact, tokenizer = TextLabels(Monitor(Options(checks=()), Locator())), Letters()
    columns = {"sentence1": TEXTS, "sentence2": OTHERS} if pairs else {"text": TEXTS}
    fact.on_tokenizer_made(TokenizerMade(tokenizer))
    fact.on_dataset_made(DatasetMade(Dataset.from_dict({**columns, "label": [0, 1, 2]})))
    both = [one + other for one, other in zip(TEXTS, OTHERS, strict=True)] if pairs else TEXTS
    fact.on_encode(Encode(encoded(both[:seen], padded_to), None, TEXTS[:seen], OTHERS[:seen] if pairs else None))
    assert fact.by_tokens() == {tuple(map(ord, text)): label for label, text in enumerate(both)}
    assert tokenizer.rows == 3 - seen


def test_a_text_with_several_labels_is_left_out() -> None:
    fact, tokenizer = TextLabels(Monitor(Options(checks=()), Locator())), Letters()
    fact.on_tokenizer_made(TokenizerMade(tokenizer))
    fact.on_dataset_made(DatasetMade(Dataset.from_dict({"text": ["a", "b", "a"], "label": [0, 1, 1]})))
    assert fact.by_tokens() == {(ord("b"),): 1}
