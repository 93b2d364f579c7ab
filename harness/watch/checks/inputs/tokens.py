"""The token ids that a model is given, with their mask, segments and positions."""

from __future__ import annotations

import torch

from harness.watch.bounded import FirstByKey
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.checks.inputs.observations.padding import LeftPadded
from harness.watch.events import IGNORED, End, positional
from harness.watch.facts.labels_given import predicts_in_place
from harness.watch.facts.tokens import Segments, TokensGiven, trailing

MASKED = 0.05
"""Largest share of the text's tokens that may be masked, as methods drop a few on purpose; and of the padding that may
be shown, as a model may have sampled it."""

MIN_PADDED = 0.25
"""Smallest share of rows that end in several of the tokens that are padding by the model's configuration alone: words
that are drawn at random seldom do. Half or double of it changes verdicts (scripts/records/margins.json)."""

DECODERS = ("Causal", "LMHead", "Decoder")
"""Words in the class names of models that need no mask for padding at the end: a token sees only those before it."""

MOST_MASKED = 0.3
"""Largest share of masked tokens in a masked language model; where more are, diffusion over tokens may be meant, which
says all of them. By reasoning: BERT masks 0.15."""

MIN_HIDDEN = 0.5
"""Smallest share of the labelled tokens that are the mask token. By reasoning: BERT masks 0.8 of them, and where labels
are classes of tokens, or the next tokens, none is."""

MIN_MASKED_AGAIN = 16
"""Texts that must have come again. By reasoning: one mask of a text of ten tokens is in the same place by chance in one
of ten."""

MOST_TEXTS = 1024
"""Texts whose first masks are remembered, of which enough come again in a shortened epoch."""


class WrongAttentionMask(Check):
    """The attention mask shows padding to the model, or hides tokens of the text from it.

    ## Why is this a bug?
    Without a mask every token attends to the padding as if it were text. The model's output for a row then depends on
    how long the other rows of its batch are, in training and again, with other batches, in use.

    ## What to do
    Pass the attention_mask of the tokenizer or collator to the model.

    ## When it is right
    Models that take no mask, decoders without one, batches without padding, and a padding token that ends the text
    because it is the same as the end token are not reported. Neither are padding tokens that a model has sampled, as an
    untrained policy does: a few of all, or between other tokens, too.

    ## References
    - https://github.com/huggingface/transformers/issues/278
    """

    explains = ("model::output-depends-on-padding",)

    def judge(self, fact: TokensGiven) -> Verdict:
        pad = fact.padding
        may_end = pad is None or pad == fact.end
        if pad is None:
            pad = getattr(getattr(fact.forward.model, "config", None), "pad_token_id", None)
            padded = pad is not None and (_padding(fact.ids, pad).sum(1) > 1).float().mean() >= MIN_PADDED
            if pad is None or not padded or _within(fact.ids, pad):
                return NOTHING_TO_JUDGE  # ids that no tokenizer made may be any word's
        observed = self._wrong(fact, pad, may_end)
        if observed is None:
            return HELD
        return Found(expected="an attention mask that is 1 for tokens and 0 for padding", observed=observed)

    def _wrong(self, fact: TokensGiven, pad: int, may_end: bool) -> str | None:
        padding, mask, model = _padding(fact.ids, pad), fact.forward.tensors.get("attention_mask"), fact.forward.model
        begins_with_it = pad == getattr(getattr(model, "config", None), "decoder_start_token_id", None)
        if begins_with_it:  # then the mask of the targets shows a decoder its first token, and hides its last one
            padding[:, :1] &= padding[:, 1:2]
        if mask is None:
            decoder = any(word in type(model).__name__ for word in DECODERS)
            missing = padding.any() and "attention_mask" in positional(model) and not decoder
            return "there is padding, but the model gets no attention mask" if missing else None
        if mask.shape != fact.ids.shape:
            return None
        shown = padding & (mask != 0)
        if may_end:
            shown &= ~_beside_text(padding)
        unseen = ~padding & (mask == 0)
        if begins_with_it:
            unseen &= ~_beside_text(~padding)
        hidden, text = int(unseen.sum()), int((~padding).sum())
        sampled = _within(fact.ids, pad) or int(shown.sum()) <= MASKED * int(padding.sum())
        if shown.any() and not sampled:
            return f"the attention mask is not 0 for {int(shown.sum())} padding tokens"
        return f"the attention mask is 0 for {hidden} of {text} tokens of the text" if hidden > MASKED * text else None


class WrongMaskedLabels(Check):
    """The labels of a masked language model are the mask token itself, or include words that are not masked.

    ## Why is this a bug?
    A masked language model learns to predict the words behind the masks. Labels that are copied after the masking teach
    it to predict the mask, and labels at all places teach it to copy: the loss falls fast, and nothing is learned.

    ## What to do
    Copy the ids before you mask them, and set the labels of all other positions to -100.

    ## When it is right
    Masks over more than 30% of the tokens are not reported: diffusion over tokens predicts all of them. Neither is a
    model that predicts the next token and whose tokenizer nevertheless has a mask token.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/data_collator
    """

    needs = "masked tokens with labels"
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")
    in_windows = "none"

    def judge(self, fact: TokensGiven) -> Verdict:
        ids, labels, mask = fact.ids, fact.forward.tensors.get("labels"), fact.mask
        if labels is None or labels.shape != ids.shape or mask is None or not (ids == mask).any():
            return NOTHING_TO_JUDGE
        if not predicts_in_place(fact.forward, labels):
            return NOTHING_TO_JUDGE
        counted = labels != IGNORED
        if (ids == mask).float().mean() > MOST_MASKED:
            return HELD
        hidden = counted & (ids == mask)
        if hidden.any() and bool((labels[hidden] == mask).all()):
            observed = "the labels at the masked positions are the mask token itself"
        elif int(counted.sum()) > 0.5 * labels.numel() and bool((labels == ids)[counted & (ids != mask)].all()):
            observed = f"{int(counted.sum())} of {labels.numel()} tokens are labelled; most of them are not masked"
        else:
            return HELD
        return Found(expected="the original token as the label of each mask, and -100 elsewhere", observed=observed)


class SameTokensMasked(Check):
    """A masked language model sees each text with the same masks in every epoch.

    ## Why is this a bug?
    The masks are drawn once, when the dataset is made, instead of each time a batch is. Every epoch then asks for the
    same few words of each text: the model learns them by heart, and never has to predict the others.

    ## What to do
    Mask in the collator: give the DataLoader or Trainer `DataCollatorForLanguageModeling(tokenizer)` and rows without
    masks.

    ## When it is right
    Ignore this warning if one mask for each text is meant, as in the first BERT, whose rows were masked ten times
    beforehand. Only masks of a tokenizer are seen, several in a text. A text that has other masks in another epoch, and
    an evaluation, are not reported.

    ## References
    - https://arxiv.org/abs/1907.11692 (section 4.1: static and dynamic masking)
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "masked texts that are trained on again"
    in_windows = "none"

    def begin(self) -> None:
        self._places = FirstByKey[int, int](MOST_TEXTS)
        """By a text, the places of its first masks."""
        self._again, self._alike = set[int](), set[int]()
        self._where: str | None = None

    def on_tokens_given(self, fact: TokensGiven) -> None:
        ids, labels, mask = fact.ids, fact.forward.tensors.get("labels"), fact.mask
        if labels is None or labels.shape != ids.shape or labels.is_floating_point():
            return
        if not any(each.requires_grad for each in fact.forward.outputs):
            return  # an evaluation
        counted = labels != IGNORED
        hidden = ids[counted]
        if mask is None or hidden.numel() < 2 * len(ids):
            return  # nobody knows what a mask is, or it is the one place that a question asks about
        is_masked = (hidden == mask) & (labels[counted] != mask)
        if int(is_masked.sum()) < MIN_HIDDEN * hidden.numel() or bool((ids[~counted] == mask).any()):
            return
        self._where = self._where or fact.where
        shown = fact.forward.tensors.get("attention_mask")
        shown = torch.ones_like(ids) if shown is None or shown.shape != ids.shape else shown
        rows = zip(*(each.tolist() for each in (torch.where(counted, labels, ids), counted, shown)), strict=True)
        for row, places, real in rows:
            text = hash(tuple(token for token, is_real in zip(row, real, strict=True) if is_real))
            masked = hash(tuple(place for place, is_real in zip(places, real, strict=True) if is_real))
            if any(places) and self._places.takes(text):
                if text in self._places:
                    self._again.add(text)
                    if self._places[text] == masked:
                        self._alike.add(text)
                self._places.setdefault(text, masked)

    def on_end(self, event: End) -> None:
        if self._where is not None:
            self.says(self.judge(len(self._again), len(self._alike)), self._where)

    @staticmethod
    def judge(again: int, alike: int) -> Verdict:
        """Texts that came again, and those of them that had the same masks again."""
        if again < MIN_MASKED_AGAIN:
            return NOTHING_TO_JUDGE
        if alike < again:
            return Held(f"{again} texts came again, {alike} of them with the same masks")
        return Found(
            expected="other masks each time a text is trained on",
            observed=f"each of the {again} texts that came again had the same masks again",
        )


class WrongSegmentIds(Check):
    """The segment ids (token_type_ids) of sentence pairs do not mark the second sentence.

    ## Why is this a bug?
    BERT learned that the second sentence of a pair has different segment embeddings. Without `token_type_ids` the model
    takes both for one sentence and never uses the embeddings that it was pretrained with for the second.

    ## What to do
    Tokenize the sentences as a pair, tokenizer(first, second), and pass the token_type_ids to the model.

    ## When it is right
    Models without segment embeddings (DistilBERT, RoBERTa), rows of one sentence, texts into which the script itself
    puts separators, and rows of which only some are marked, because a text contains the separator, are not reported.

    ## References
    - https://github.com/huggingface/transformers/issues/263
    - https://github.com/huggingface/transformers/issues/48128
    """

    needs = "tokenized pairs"

    def judge(self, fact: TokensGiven) -> Verdict:
        kinds = getattr(getattr(fact.forward.model, "config", None), "type_vocab_size", 0)
        if fact.segments is None or not fact.segments.pairs or not kinds or kinds < 2 or fact.separated_by_hand:
            return NOTHING_TO_JUDGE
        observed = _wrong(fact.segments, fact.forward.tensors.get("token_type_ids"))
        if observed is None:
            return HELD
        return Found(
            expected="token_type_ids that are 0 for the first sentence and 1 for the second", observed=observed
        )


class PositionsCountPadding(Check):
    """Rows are padded on the left, and their position ids count the padding.

    ## Why is this a bug?
    A model with absolute positions assumes that the first token of a row is at position 0 unless it is told otherwise.
    Padded on the left and without `position_ids`, a text begins at a different position in each batch. `generate()`
    makes position ids from the attention mask, so in use the text begins at 0 again: the model is used in a way that it
    was not trained for.

    ## What to do
    Pad on the right in training, or pass position_ids: `(attention_mask.cumsum(-1) - 1).clamp(min=0)`.

    ## When it is right
    Models with relative positions (RoPE, ALiBi) give the same output either way and are not reported: the check tries
    it on a copy of the model. A model that is used exactly as it was trained, without `generate()`, may stay unchanged.

    ## References
    - https://huggingface.co/docs/transformers/llm_tutorial#padding-side
    - https://github.com/tloen/alpaca-lora/issues/315
    """

    new_since = "0.2.0"

    def judge(self, fact: LeftPadded) -> Verdict:
        if not fact.differs:
            return HELD
        return Found(
            expected="position ids that start at 0 with the first token of a text, as in generate()",
            observed=f"{fact.padded} of {fact.rows} rows are padded on the left without position_ids; with "
            "position_ids that start at the text, the model gives different logits",
        )


def _padding(ids: torch.Tensor, pad: int) -> torch.Tensor:
    """(rows, tokens): where the padding is, at either end of a row."""
    is_pad = ids == pad
    leading = is_pad.cumprod(1).bool()
    return (trailing(ids, pad) | leading) & ~is_pad.all(1, keepdim=True)


def _within(ids: torch.Tensor, pad: int) -> bool:
    """Whether an id is there between others, too: then it is a word, whatever the model's configuration says."""
    return bool(((ids == pad) & ~_padding(ids, pad) & (ids != pad).any(1, keepdim=True)).any())


def _beside_text(padding: torch.Tensor) -> torch.Tensor:
    """(rows, tokens): padding that may be the text's own end or beginning."""
    beside, text = torch.zeros_like(padding), ~padding
    beside[:, 1:] |= text[:, :-1]
    beside[:, :-1] |= text[:, 1:]
    return beside & padding


def _wrong(segments: Segments, types: torch.Tensor | None) -> str | None:
    if types is None:
        return "the model has segment embeddings and the rows are pairs, but it gets no token_type_ids"
    if any(_marks_second(types[row].tolist(), first, second) for row, first, second in segments.pairs):
        return None  # in the others a text contains the separator
    values = sorted(set(types[[row for row, _, _ in segments.pairs]].flatten().tolist()))
    return f"the token_type_ids of pairs are {values}, and do not change after the first separator"


def _marks_second(types: list[int], first: int, second: int) -> bool:
    return types[1] != types[first + 1] and len(set(types[first + 1 : second])) == 1
