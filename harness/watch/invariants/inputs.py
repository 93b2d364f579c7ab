"""Input contract: what the tokenizer made reaches the model whole, masked and labelled as it should be."""

from __future__ import annotations

import inspect
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn

from harness.watch.events_old import Forward, Loss
from harness.watch.invariants.rows import PAIRS
from harness.watch.observer import Invariant, Observer, Statement

ENOUGH = 16
"""So many rows are looked at before something is said of all of them."""


class Inputs(Invariant):
    checks = (
        Statement("inputs::padding-is-masked", "The attention mask is 1 for the tokens and 0 for the padding."),
        Statement("inputs::segment-ids", "Segment ids mark the second sentence, where the model has them."),
        Statement("inputs::both-sentences", "Both sentences of a pair reach the model."),
        Statement("inputs::labels", "The labels that reach the model are the classes of the rows."),
        Statement("inputs::not-cut-off", "Texts are not cut to a small part of them.", severity="warning"),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.latest: Any = None
        self.pair: tuple[str, str] | None = None
        self.rows = self.second = self.empty = self.twice = 0
        self.labels: set[int] = set()
        self.labelled = self.regressed = 0
        self.targets: set[float] = set()
        self.tokenized = self.truncated = self.kept = self.cut = 0
        self.where: str | None = None
        self.cut_where: str | None = None
        self.accepts: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()

    def tokenizer(self, tokenizer: Any) -> None:
        self.latest = ref(tokenizer)

    def dataset(self, dataset: Any) -> None:
        columns = set(dataset.column_names or ())
        if "input_ids" in columns:
            return
        for pair in PAIRS:
            if columns.issuperset(pair):
                self.pair = pair
            elif pair == self.pair and columns.intersection(pair):
                self.pair = None  # somebody left one of them out

    def encoded(self, event: tuple[Any, str | None]) -> None:
        """What a fast tokenizer made: it keeps what it cut off."""
        encodings, where = event
        for encoding in encodings or ():
            self.tokenized += 1
            self.kept += sum(encoding.attention_mask)
            over = sum(sum(each.special_tokens_mask) < len(each) and len(each) for each in encoding.overflowing)
            if over:
                self.truncated += 1
                self.cut += over
                self.cut_where = where

    def _masked_words(self, event: Forward, ids: torch.Tensor, labels: torch.Tensor | None) -> None:
        """A masked language model is trained to say the words behind the masks, and only those."""
        mask = self._special("mask_token_id")
        if labels is None or labels.shape != ids.shape or mask is None or not (ids == mask).any():
            return
        counted = labels != -100
        hidden = counted & (ids == mask)
        observed = None
        if hidden.any() and bool((labels[hidden] == mask).all()):
            observed = "the labels at the masked places are the mask itself"
        elif int(counted.sum()) > 0.5 * labels.numel() and bool((labels == ids)[counted & (ids != mask)].all()):
            observed = f"{int(counted.sum())} of {labels.numel()} tokens are labelled; most of them are not masked"
        if observed is not None:
            self.found(
                "inputs::labels",
                expected="the word behind each mask, and -100 elsewhere",
                observed=observed,
                hint="Copy the ids before they are masked, and set the labels of all other places to -100.",
                where=event.where,
                update=self.observer.update,
            )

    def _special(self, name: str) -> int | None:
        tokenizer = None if self.latest is None else self.latest()
        return getattr(tokenizer, name, None)

    def forward(self, event: Forward) -> None:
        if self.observer.is_sampled():
            self._look(event)
            if event.gradients:
                self._regression(event)

    def inner_forward(self, event: Forward) -> None:
        if self.observer.is_sampled():
            self._look(event)

    def _look(self, event: Forward) -> None:
        given = event.tensors
        ids = given.get("input_ids")
        if ids is None or ids.dim() != 2 or ids.is_floating_point():
            return
        config = getattr(event.model, "config", None)
        pad = self._special("pad_token_id")
        pad = getattr(config, "pad_token_id", None) if pad is None else pad
        if pad is not None:
            self._mask(event, ids, given.get("attention_mask"), pad)
        self._masked_words(event, ids, given.get("labels"))
        separator = self._special("sep_token_id")
        if separator is not None and (ids == separator).any() and not _masked_language_model(given, ids):
            self._segments(event, ids, given.get("token_type_ids"), separator, getattr(config, "type_vocab_size", 0))

    def _mask(self, event: Forward, ids: torch.Tensor, mask: torch.Tensor | None, pad: int) -> None:
        padding = _padding(ids, pad)
        decoder = any(word in type(event.model).__name__ for word in ("Causal", "LMHead", "Decoder"))
        if mask is None:
            if padding.any() and self._accepts_mask(event.model) and not decoder:
                self._wrong_mask("there is padding, and the model gets no attention mask", event)
            return
        if mask.shape != ids.shape:
            return
        eos = self._special("eos_token_id")
        shown = padding & (mask != 0)
        if eos == pad:
            shown &= (padding.cumsum(1) > 1) & ~_first_pads(padding)  # one of them may be the text's end
        hidden = ~padding & (mask == 0)
        if shown.any():
            self._wrong_mask(f"{int(shown.sum())} tokens of padding are attended to", event)
        elif int(hidden.sum()) > 0.05 * int((~padding).sum()):
            self._wrong_mask(f"{int(hidden.sum())} of {int((~padding).sum())} tokens of the text are masked", event)

    def _accepts_mask(self, model: nn.Module) -> bool:
        if model not in self.accepts:
            self.accepts[model] = "attention_mask" in inspect.signature(model.forward).parameters
        return self.accepts[model]

    def _wrong_mask(self, observed: str, event: Forward) -> None:
        self.found(
            "inputs::padding-is-masked",
            expected="an attention mask that is 1 for tokens and 0 for padding",
            observed=observed,
            hint="Pass on the attention_mask that the tokenizer and the collator made.",
            where=event.where,
            update=self.observer.update,
        )

    def _segments(
        self, event: Forward, ids: torch.Tensor, types: torch.Tensor | None, separator: int, kinds: int | None
    ) -> None:
        pairs = []
        for row, tokens in enumerate(ids.tolist()):
            ends = [place for place, token in enumerate(tokens) if token == separator]
            self.rows += 1
            if len(ends) >= 2 and ends[1] - ends[0] > 1:
                pairs.append((row, ends[0], ends[1]))
            elif len(ends) >= 2:
                self.empty += 1
        self.second += len(pairs)
        tokens = ids.tolist()
        self.twice += sum(tokens[row][1:first] == tokens[row][first + 1 : second] for row, first, second in pairs)
        self.where = event.where
        if not pairs or not kinds or kinds < 2 or not hasattr(event.model, "config"):
            return
        if types is None:
            observed = "the model has segment embeddings, the rows are pairs, and it gets no token_type_ids"
        elif all(_right(types[row].tolist(), first, second) for row, first, second in pairs):
            return
        elif any(_right(types[row].tolist(), first, second) for row, first, second in pairs):
            return  # a separator inside a text
        else:
            values = sorted(set(types[[row for row, _, _ in pairs]].flatten().tolist()))
            observed = f"token_type_ids of pairs are {values}, and do not change behind the first separator"
        self.found(
            "inputs::segment-ids",
            expected="token_type_ids that are 0 for the first sentence and 1 for the second",
            observed=observed,
            hint="Tokenize the sentences as a pair, tokenizer(first, second), and pass on its token_type_ids.",
            where=event.where,
            update=self.observer.update,
        )

    def loss(self, event: Loss) -> None:
        if event.function != "cross_entropy" or event.target.dim() != 1 or event.target.is_floating_point():
            return
        ignored = event.options.get("ignore_index", -100)
        is_class = event.input.dim() == 2 and 0 <= ignored < event.input.shape[1]
        if self.observer.is_sampled() and is_class and (event.target == ignored).any():
            self._wrong_labels(f"ignore_index={ignored} leaves the rows of class {ignored} out", event)
        if event.batch is None or event.input.dim() != 2 or event.input.shape[0] > 4096:
            return
        drawn = event.batch.indices
        left_out = int((event.target == ignored).sum()) if ignored < 0 else 0
        if left_out and isinstance(drawn, (list, tuple)) and len(drawn) == len(event.target):
            self._wrong_labels(
                f"{left_out} of {len(drawn)} rows of a batch have the label {ignored} and count for nothing", event
            )
        if len(self.labels) < 2:
            self.labels.update(event.target.tolist())
            self.labelled += len(event.target)

    def _regression(self, event: Forward) -> None:
        """Classes 0 and 1 that a model with one output is fitted to as numbers."""
        labels = event.tensors.get("labels")
        outputs = getattr(getattr(event.model, "config", None), "num_labels", None)
        if labels is None or labels.is_floating_point() or outputs != 1:
            return
        self.targets.update(float(value) for value in labels.flatten().tolist())
        self.regressed += labels.numel()
        if self.regressed >= 2 * ENOUGH and self.targets == {0.0, 1.0}:
            self._wrong_labels("num_labels=1 makes a regression of them: all targets are 0 or 1", event)

    def _wrong_labels(self, observed: str, event: Loss | Forward) -> None:
        self.found(
            "inputs::labels",
            expected="whole numbers from 0 on, one class each, all of them counted",
            observed=observed,
            hint="Look at the column that becomes the labels, and at the loss function's options.",
            where=event.where,
            update=self.observer.update,
        )

    def ends(self, _: None) -> None:
        if self.labelled >= 2 * ENOUGH and len(self.labels) == 1:
            self.found(
                "inputs::labels",
                expected="rows of more than one class",
                observed=f"all {self.labelled} rows that were trained on have the label {self.labels.pop()}",
                hint="Look at the column that becomes the labels, and at the order of the rows.",
                where=self.where,
                update=1,
            )
        if self.rows >= ENOUGH and self.pair is not None:
            names = f"{self.pair[0]} and {self.pair[1]}"
            if self.second == 0 and self.empty == 0:
                self._one_sentence(names, "the rows that reach the model have one segment only")
            elif self.twice > 0.9 * self.second:
                self._one_sentence(names, f"in {self.twice} of {self.second} rows one of them comes twice")
            elif self.empty > self.second:
                self._one_sentence(names, f"in {self.empty} of {self.rows} rows the second is cut off wholly")
        if self.tokenized >= ENOUGH and self.truncated > self.tokenized / 2 and self.cut > self.kept:
            self.found(
                "inputs::not-cut-off",
                expected="most of each text",
                observed=f"{self.truncated} of {self.tokenized} texts are cut; more tokens are left out than kept",
                hint="Raise max_length; right for long documents, of which only the beginning is wanted.",
                where=self.cut_where,
            )

    def _one_sentence(self, names: str, observed: str) -> None:
        self.found(
            "inputs::both-sentences",
            expected=f"{names}, both in each row",
            observed=observed,
            hint="Tokenize both: tokenizer(example[first], example[second], truncation=True).",
            where=self.where,
            update=1,
        )


def _padding(ids: torch.Tensor, pad: int) -> torch.Tensor:
    """(rows, tokens): where the padding is, at either end of a row."""
    is_pad = ids == pad
    trailing = is_pad.flip(1).cumprod(1).flip(1).bool()
    leading = is_pad.cumprod(1).bool()
    return (trailing | leading) & ~is_pad.all(1, keepdim=True)


def _first_pads(padding: torch.Tensor) -> torch.Tensor:
    return padding & (padding.cumsum(1) == 1)


def _right(types: list[int], first: int, second: int) -> bool:
    return types[1] != types[first + 1] and len(set(types[first + 1 : second])) == 1


def _masked_language_model(given: dict[str, torch.Tensor], ids: torch.Tensor) -> bool:
    labels = given.get("labels")
    return labels is not None and labels.shape == ids.shape
