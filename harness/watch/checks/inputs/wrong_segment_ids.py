from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import Forward, InnerForward
from harness.watch.facts.tokens import Segments, Tokens
from harness.watch.monitor import Monitor


class WrongSegmentIds(Check):
    """The segment ids of pairs do not mark the second sentence, in a model that has segment embeddings.

    ## Why is this a bug?
    BERT learned that the second sentence of a pair has different segment embeddings. Without `token_type_ids` the model
    takes both for one sentence and never uses the embeddings that it was pretrained with for the second.

    ## What to do
    Tokenize the sentences as a pair, tokenizer(first, second), and pass on its token_type_ids.

    ## When it is right
    Models without segment embeddings (DistilBERT, RoBERTa), rows of one sentence, texts into which the script itself
    puts separators, and rows of which only some are marked, because a text contains the separator, are not reported.

    ## References
    - https://github.com/huggingface/transformers/issues/263
    - https://github.com/huggingface/transformers/issues/48128
    """

    needs = "tokenized pairs"
    in_windows = "first"
    formerly = ("inputs::segment-ids",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)

    def on_forward(self, event: Forward) -> None:
        self._look_at(event)

    def on_inner_forward(self, event: InnerForward) -> None:
        self._look_at(event)

    def _look_at(self, event: Forward) -> None:
        segments = self.tokens.segments
        kinds = getattr(getattr(event.model, "config", None), "type_vocab_size", 0)
        if segments is None or not segments.pairs or not kinds or kinds < 2 or self._separated_by_hand():
            return
        self.looked = True
        observed = _wrong(segments, event.tensors.get("token_type_ids"))
        if observed is not None:
            self.found(
                expected="token_type_ids that are 0 for the first sentence and 1 for the second",
                observed=observed,
                where=event.where,
                update=self.monitor.update,
            )

    def _separated_by_hand(self) -> bool:
        """Whether the tokenizer was given no pairs: then the script put the separators into its texts."""
        calls = self.tokens.calls.values()
        return any(each.rows for each in calls) and not any(each.pairs for each in calls)


def _wrong(segments: Segments, types: torch.Tensor | None) -> str | None:
    if types is None:
        return "the model has segment embeddings, the rows are pairs, and it gets no token_type_ids"
    if any(_marks_second(types[row].tolist(), first, second) for row, first, second in segments.pairs):
        return None  # in the others a text contains the separator
    values = sorted(set(types[[row for row, _, _ in segments.pairs]].flatten().tolist()))
    return f"token_type_ids of pairs are {values}, and do not change behind the first separator"


def _marks_second(types: list[int], first: int, second: int) -> bool:
    return types[1] != types[first + 1] and len(set(types[first + 1 : second])) == 1
