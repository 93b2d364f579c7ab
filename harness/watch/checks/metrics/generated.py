"""Texts that a model generates to be scored, beside those that they are scored against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.events import IGNORED, Batch, End, Generated
from harness.watch.facts.labels_given import has_decoder

MIN_GENERATED = 16
"""Texts that must have been generated. By reasoning: fewer may be examples that are printed."""

MIN_CUT = 0.5
"""Smallest share of them that ends before the reference does. By reasoning: a limit may be meant to cut the longest."""


class GeneratedTooShort(Check):
    """Generation stops at a limit that most reference texts exceed.

    ## Why is this a bug?
    `generate()` writes at most 20 tokens unless it is told otherwise, and Seq2SeqTrainer uses that limit for its
    evaluation, too. If the references are longer, each generated text is cut off: BLEU, ROUGE and the best checkpoint
    then say how well the beginning is written, and no training can improve the rest.

    ## What to do
    Set the limit above the longest reference: `generate(max_new_tokens=…)`, `generation_max_length=…` of
    Seq2SeqTrainingArguments, or `model.generation_config.max_new_tokens`.

    ## When it is right
    Ignore this warning if the beginning is all that is scored. Texts are compared only with the `labels` of the batch
    that was read last, and one that has an end token is not cut off.

    ## References
    - https://github.com/huggingface/transformers/issues/10032
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "texts generated for the rows of a batch with labels"

    def begin(self) -> None:
        self._rows = self._cut = self._longest = 0
        self._shortest: int | None = None
        self._labels: torch.Tensor | None = None
        """Those of the latest batch, from which scripts take them out before they call the model."""
        self._where: str | None = None

    def on_batch(self, event: Batch) -> None:
        self._labels = _labels(event.data)

    def on_generated(self, event: Generated) -> None:
        labels, ends = self._labels, _ends(event.model)
        if labels is None or not ends or not has_decoder(event.model) or len(labels) != len(event.tokens):
            return
        limit = event.tokens.shape[1] - 1  # without the start token
        within = event.tokens[:, 1 : -1 if _is_forced(event.model) else None]
        unfinished = ~torch.isin(within, torch.tensor(ends, device=within.device)).any(1)
        lengths = (labels != IGNORED).sum(1) if (labels == IGNORED).any() else _without_padding(event.model, labels)
        self._rows += len(labels)
        self._cut += int((unfinished.to(lengths.device) & (lengths > limit)).sum())
        self._longest = max(self._longest, int(lengths.max()))
        self._shortest = limit if self._shortest is None else min(self._shortest, limit)
        self._where = self._where or event.where

    def on_end(self, event: End) -> None:
        if self._rows:
            self.says(self.judge(self._rows, self._cut, self._shortest or 0, self._longest), self._where)

    @staticmethod
    def judge(rows: int, cut: int, limit: int, longest: int) -> Verdict:
        """Texts that were generated, those that the limit cuts before their reference ends, that limit and the longest
        reference in tokens."""
        if rows < MIN_GENERATED:
            return NOTHING_TO_JUDGE
        if cut < MIN_CUT * rows:
            return Held(f"{rows} texts, {cut} of them cut off before their references end")
        return Found(
            expected=f"texts that may be as long as the references, of up to {longest} tokens",
            observed=f"{cut} of {rows} texts are cut off at {limit} tokens, before their references end",
        )


def _labels(data: Any) -> torch.Tensor | None:
    labels = data.get("labels") if isinstance(data, Mapping) else None
    return labels if torch.is_tensor(labels) and labels.dim() == 2 and not labels.is_floating_point() else None


def _ends(model: Any) -> list[int]:
    """The tokens that end a text."""
    for config in (getattr(model, "generation_config", None), getattr(model, "config", None)):
        found = getattr(config, "eos_token_id", None)
        if isinstance(found, int):
            return [found]
        if isinstance(found, (list, tuple)):
            return [each for each in found if isinstance(each, int)]
    return []


def _is_forced(model: Any) -> bool:
    """Whether a model writes the end token in the last place, whatever it has written before."""
    configs = (getattr(model, "generation_config", None), getattr(model, "config", None))
    return any(getattr(config, "forced_eos_token_id", None) is not None for config in configs)


def _without_padding(model: Any, labels: torch.Tensor) -> torch.Tensor:
    padding = getattr(getattr(model, "config", None), "pad_token_id", None)
    return (labels != (-1 if padding is None else padding)).sum(1)
