"""Texts: the label of each in the datasets that the script has read, those that were tokenized last, and how much of
them was cut off, and how many of their words were known."""

from __future__ import annotations

from itertools import compress, islice
from types import NoneType
from typing import Any
from weakref import ref

from harness.watch.bounded import First
from harness.watch.events import Batch, DatasetMade, Encode, End, Fact, TokenizerMade
from harness.watch.facts.datasets import MOST_ROWS, PAIRS
from harness.watch.facts.tokens import Tokens, copied, texts_given
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import LABELS, tensors_in

MOST_ENCODED = 256
"""Rows of a call of the tokenizer that are kept until the next batch: by reasoning, a larger one makes a data set."""

MOST_TOKENS = 20_000
"""Tokens that are looked at. By reasoning, what is enough."""

SAMPLED_ROWS = 64
"""Rows of one call that are looked at."""


class LatestEncoded(Recogniser):
    """What the latest call of the tokenizer was given and made, as far as tensors are looked at."""

    def begin(self) -> None:
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

    def begin(self) -> None:
        self._tokenizer: ref[Any] | None = None
        self._raw = First[tuple[Any, tuple[str, ...], str]]()
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
        if self._labels is None and dataset.num_rows <= MOST_ROWS:
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
            self._raw, self._tokens = First(), {}
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
            for text, true in zip(texts, columns[label], strict=True):
                for row in self._tokens.get(text, ()):
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


class TextsEncoded(Fact):
    """A run is over in which a tokenizer was called. ``where`` it last cut a text."""

    needs = "tokenized texts"
    of_run = True
    texts: int
    cut: int = 0
    """Texts that were cut."""
    kept: int = 0
    """Tokens."""
    left_out: int = 0
    """Tokens."""


class WordsEncoded(Fact):
    """A run is over in which a tokenizer with an unknown token was called. ``where`` it was last looked at."""

    needs = "tokenized texts"
    of_run = True
    tokens: int
    """Tokens that were looked at."""
    unknown: int
    """Tokens that are the unknown one."""


class EncodedTexts(Recogniser):
    makes = (TextsEncoded, WordsEncoded)

    def begin(self) -> None:
        self._special = self.fact(Tokens).special
        self._texts = self._cut = self._kept = self._left_out = 0
        self._cut_at: str | None = None
        """The latest call that cut some."""
        self._by_workers = False
        """Whether workers of a loader tokenize."""
        self._tokens = self._unknown = 0
        self._where: str | None = None
        """The latest call whose words were looked at."""

    def on_encode(self, event: Encode) -> None:
        """What a fast tokenizer made: it keeps what it cut off."""
        for encoding in () if event.overflows else event.encodings or ():
            self._texts += 1
            self._kept += sum(encoding.attention_mask)
            over = sum(sum(each.special_tokens_mask) < len(each) and len(each) for each in encoding.overflowing)
            if over:
                self._cut += 1
                self._left_out += over
                self._cut_at = event.where
        unknown = self._special("unk_token_id")
        if unknown is None or self._tokens > MOST_TOKENS:
            return
        for encoding in islice(event.encodings or (), SAMPLED_ROWS):
            text = [token for token, added in zip(encoding.ids, encoding.special_tokens_mask, strict=True) if not added]
            self._tokens += len(text)
            self._unknown += text.count(unknown)
            self._where = event.where

    def on_batch(self, event: Batch) -> None:
        if event.of.batches == 1 and event.of.loader.num_workers > 0:
            made = any(name.endswith("input_ids") for name, _ in tensors_in(event.data))
            columns = getattr(event.of.dataset, "column_names", None) or ()
            self._by_workers = self._by_workers or (made and "input_ids" not in columns)

    def on_end(self, event: End) -> None:
        if self._by_workers and not self._texts:
            self.monitor.note(
                "the workers of a DataLoader tokenize the texts: whether they are cut, or unknown words, is not seen "
                "(with num_workers=0 it is)"
            )
        cut, kept, left_out = self._cut, self._kept, self._left_out
        self.tell(TextsEncoded(texts=self._texts, cut=cut, kept=kept, left_out=left_out, where=self._cut_at))
        self.tell(WordsEncoded(tokens=self._tokens, unknown=self._unknown, where=self._where))
