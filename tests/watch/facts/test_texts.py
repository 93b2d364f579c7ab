"""Which label a text has, by the tokens that the script's tokenizer makes of it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from harness.watch.checks.inputs.observations.turns import TurnStarts
from harness.watch.checks.saved.loaded_again import TokenizerOtherwise
from harness.watch.events import DatasetMade, Encode, End, TokenizerMade
from harness.watch.facts.chat_templates import ChatTemplates
from harness.watch.facts.reloads import Reloads, TokenizerKept
from harness.watch.facts.texts import TextLabels
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.reload import Reloaded

ASKED: list[str] = []
TEXTS, OTHERS = ["a", "ab", "abc"], ["x", "y", "z"]


class Letters:
    """A tokenizer of letters, which counts the rows that it and its copies are given."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, texts: list[str], pairs: list[str] | None = None, *, truncation: bool) -> dict[str, Any]:
        self.rows += len(texts)
        ASKED.extend(texts)
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
    ASKED.clear()
    fact, tokenizer = TextLabels(Monitor(Options(checks=()), Locator())), Letters()
    columns = {"sentence1": TEXTS, "sentence2": OTHERS} if pairs else {"text": TEXTS}
    fact.on_tokenizer_made(TokenizerMade(tokenizer))
    fact.on_dataset_made(DatasetMade(Dataset.from_dict({**columns, "label": [0, 1, 2]})))
    both = [one + other for one, other in zip(TEXTS, OTHERS, strict=True)] if pairs else TEXTS
    fact.on_encode(Encode(encoded(both[:seen], padded_to), None, TEXTS[:seen], OTHERS[:seen] if pairs else None))
    assert fact.by_tokens() == {tuple(map(ord, text)): label for label, text in enumerate(both)}
    assert len(ASKED) == 3 - seen
    assert tokenizer.rows == 0


def test_a_text_with_several_labels_is_left_out() -> None:
    fact, tokenizer = TextLabels(Monitor(Options(checks=()), Locator())), Letters()
    fact.on_tokenizer_made(TokenizerMade(tokenizer))
    fact.on_dataset_made(DatasetMade(Dataset.from_dict({"text": ["a", "b", "a"], "label": [0, 1, 1]})))
    assert fact.by_tokens() == {(ord("b"),): 1}


def test_a_tokenizer_that_cannot_be_copied_is_not_asked() -> None:
    class Locked(Letters):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("it cannot be copied")

    fact, tokenizer = TextLabels(Monitor(Options(checks=()), Locator())), Locked()
    fact.on_tokenizer_made(TokenizerMade(tokenizer))
    fact.on_dataset_made(DatasetMade(Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]})))
    assert fact.by_tokens() == {}
    assert tokenizer.rows == 0


def words() -> Any:
    """A fast tokenizer, as a call with truncation and padding has left it."""
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate("? <s> a b user zqx".split())}, "?"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    template = "{% for m in messages %} {{ m['role'] }} {{ m['content'] }} {% endfor %}"
    found = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="?", bos_token="<s>", chat_template=template)
    found("a b", truncation=True, max_length=4, padding="max_length")
    return found


def asked_for_labels(monitor: Monitor, tokenizer: Any) -> None:
    fact = TextLabels(monitor)
    fact.on_tokenizer_made(TokenizerMade(tokenizer))
    fact.on_dataset_made(DatasetMade(Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]})))
    assert fact.by_tokens() == {(1, 2): 0, (1, 3): 1}


def asked_for_roles(monitor: Monitor, tokenizer: Any) -> None:
    fact = ChatTemplates(monitor)
    fact.on_tokenizer_made(TokenizerMade(tokenizer))
    assert ("user", [4]) in fact.headers


def asked_for_its_start(monitor: Monitor, tokenizer: Any) -> None:
    starts, told = TurnStarts(monitor), list[Any]()
    starts.tell = told.append  # type: ignore[method-assign, assignment]
    starts._template.on_tokenizer_made(TokenizerMade(tokenizer))
    starts._begun = True
    starts.on_end(End())
    assert told


def asked_as_it_was_saved(monitor: Monitor, tokenizer: Any) -> None:
    check, reloads = monitor.bus.add(TokenizerOtherwise), monitor.fact(Reloads)
    monitor.stepped = True
    reloads.tokenizers["saved"] = kept = TokenizerKept(tokenizer, None, 1)
    reloads._told["saved"] = Reloaded(tokens=[[1]] * len(reloads.texts(kept)), talk="")
    monitor.emit(End())
    assert check.looked


@pytest.mark.parametrize("asked", [asked_for_labels, asked_for_roles, asked_for_its_start, asked_as_it_was_saved])
def test_a_fast_tokenizer_is_left_as_it_was(asked: Callable[[Monitor, Any], None]) -> None:
    tokenizer = words()
    before = tokenizer.backend_tokenizer.to_str()
    assert tokenizer.backend_tokenizer.truncation is not None
    asked(Monitor(Options(checks=()), Locator()), tokenizer)
    assert tokenizer.backend_tokenizer.to_str() == before


class Remote:
    """An object of the script's own that is asked for any name over a connection."""

    processing_class: Any

    def __getattr__(self, name: str) -> Any:
        raise ConnectionError(name)

    def look(self, fact: ChatTemplates) -> None:
        fact.look_around()


def test_objects_of_the_script_are_not_asked_for_a_tokenizer() -> None:
    Remote().look(ChatTemplates(Monitor(Options(checks=()), Locator())))
    holder = Remote()
    holder.processing_class = words()  # as a Trainer's
    fact = ChatTemplates(Monitor(Options(checks=()), Locator()))
    holder.look(fact)
    assert fact.tokenizer is holder.processing_class
