"""What of the rows of a language model carries a label."""

from __future__ import annotations

from collections.abc import Iterator

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.inputs.observations.padding import PaddingCounted
from harness.watch.checks.inputs.observations.taught_rows import PromptsTaught, RowsWithoutLabel
from harness.watch.events import Forward
from harness.watch.facts.labels_given import Labelled

MIN_ROWS = 16
"""Rows that must have been seen for a share of them to mean something. By reasoning: one of fewer is no rule."""

MAX_WITHOUT = 0.05
"""Largest share of rows without any label that may be a few long ones."""

MIN_PROMPTS = 0.05
"""Smallest share of rows that are taught whole, or with their prompt left out, that is no exception."""

MIN_PADDING = 0.05
"""Share of the places that count, above which the padding among them matters."""

PLACEHOLDERS = ("image_token_id", "image_token_index", "video_token_id", "audio_token_id", "audio_token_index")
"""Names under which a configuration says what stands for a piece of an image, a video or a sound."""


class NothingTaught(Check):
    """Training rows of a language model have no labels, so they teach it nothing.

    ## Why is this a bug?
    A row whose labels are all -100 has no loss. That happens when truncation cuts off the answer, when a template has
    no `{% generation %}` block for `assistant_only_loss` to find, or when the marker that the mask looks for is
    tokenized differently. The run looks fine, and trains on the other rows, or on none: a loss of 0 or NaN is the only
    sign.

    ## What to do
    Print a row's labels, or run `harness tokens`. Raise `max_length`, or truncate the prompt instead of the answer;
    filter out rows without labels; add generation markers to the chat template.

    ## When it is right
    A few rows without an answer are nothing to worry about: only a whole batch without a label, or more than one row in
    twenty, is reported.

    ## References
    - https://github.com/huggingface/trl/issues/3927
    """

    def judge(self, fact: RowsWithoutLabel) -> Verdict:
        often = fact.rows >= MIN_ROWS and fact.without > MAX_WITHOUT * fact.rows
        if not fact.empty and not often:
            return HELD
        long = f"; {fact.cut} of these rows fill the full length: was the answer cut off?" if fact.cut else ""
        return Found(
            expected="labels other than -100 in every row",
            observed=f"{fact.without} of the {fact.rows} rows looked at, and {fact.empty} of {fact.batches} whole "
            f"batches, have only -100{long}",
            update=fact.update,
        )


class PromptTaught(Check):
    """The prompt is part of the loss in some rows, or in all rows although it should be left out.

    ## Why is this a bug?
    If the mask of the prompt looks for a marker, rows in which the marker is tokenized differently are taught whole: in
    these rows, the model learns to ask as well as to answer. `completion_only_loss=True` and `assistant_only_loss=True`
    ask TRL for a loss on the answer alone; a collator of your own, or a data set that is already tokenized, knows
    nothing of them.

    ## What to do
    Run `harness tokens` to see which tokens are in the loss, and look at a row whose prompt is. Search for the marker's
    token ids as they occur in the text, or mask by the length of the tokenized prompt.

    ## When it is right
    A mixture of texts without a prompt and conversations.

    ## References
    - https://huggingface.co/docs/trl/sft_trainer#train-on-completion-only
    """

    severity = "warning"
    new_since = "0.2.0"

    def judge(self, fact: PromptsTaught) -> Verdict:
        if fact.rows < MIN_ROWS or (not fact.prompts and fact.asked is None):
            return NOTHING_TO_JUDGE
        in_vain = fact.asked is not None and not fact.prompts and fact.whole >= MIN_PROMPTS * fact.rows
        if not in_vain and fact.mixed < MIN_PROMPTS * fact.rows:
            return HELD
        asked = f", because {fact.asked}=True is set" if fact.asked else ", as in the other rows"
        return Found(
            expected=f"-100 as the label of each prompt token{asked}",
            observed=f"in {fact.mixed or fact.whole} of {fact.rows} rows the prompt is also in the loss",
        )


class PlaceholderTaught(Check):
    """Placeholder tokens for images or audio are among the labels.

    ## Why is this a bug?
    A row of a vision or audio model holds hundreds of tokens that the encoder's features replace. Taught as text, they
    make up most of the loss, and they teach the model to repeat the placeholder again and again.

    ## What to do
    Set their labels to -100: `labels[labels == model.config.image_token_id] = -100`.

    ## When it is right
    Models that generate images as tokens.

    ## References
    - https://huggingface.co/docs/trl/sft_trainer#training-vision-language-models
    """

    new_since = "0.2.0"
    needs = "model with placeholders for images or sound"

    def judge(self, fact: Labelled) -> Verdict:
        placeholders = list(_placeholders(fact.forward))
        for name, token in placeholders:
            taught = int((fact.labels == token).sum())
            if taught:
                return Found(
                    expected=f"-100 as the label wherever the token is the {name}",
                    observed=f"{taught} of the {int(fact.counted.sum())} labels in the loss are the token {token}",
                )
        return HELD if placeholders else NOTHING_TO_JUDGE


class PaddingInLoss(Check):
    """Padding tokens are part of the loss.

    ## Why is this a bug?
    The loss is a mean over positions. If padding is among them, the model is taught to predict padding after padding,
    which is easy: the longer the longest row of a batch is, the smaller the loss looks and the less the text counts.

    ## What to do
    Set the labels of padding to -100: labels.masked_fill(attention_mask == 0, -100), or use a collator of transformers
    that does it (DataCollatorForSeq2Seq, DataCollatorForTokenClassification). In your own loop, use
    CrossEntropyLoss(ignore_index=PADDING).

    ## When it is right
    Ignore the warning if the model should learn to fill up a row. One padding token at the end of a text is not
    reported if it is the same as the end token. Neither is a loss per position that the script masks itself. An
    `attention_mask`, a tokenizer, or the `padding_idx` of `torch.nn.Embedding` says what padding is.

    ## References
    - https://huggingface.co/docs/transformers/model_doc/t5#training
    """

    severity = "warning"

    def judge(self, fact: PaddingCounted) -> Verdict:
        if fact.padding <= MIN_PADDING * fact.counted:
            return HELD
        return Found(
            expected="-100, which the loss ignores, as the label of padding",
            observed=f"{fact.padding} of the {fact.counted} positions in the loss are padding",
        )


def _placeholders(forward: Forward) -> Iterator[tuple[str, int]]:
    config = getattr(forward.model, "config", None)
    for name in PLACEHOLDERS:
        if isinstance(token := getattr(config, name, None), int):
            yield name, token
