"""How texts and turns begin and end, as tokenizers and chat templates write them."""

from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.inputs.observations.turns import StartsDoubled, StartsTaught, TurnsTaught

MIN_OPEN = 8
"""Rows that must end so. By reasoning: one or two may have been cut off there."""

MIN_SHARE_OPEN = 0.5
"""Share of the rows that must end so. What `add_generation_prompt` does, it does to all of them."""

MIN_NESTED = 8
"""Rows that must have it. By reasoning: one or two may quote a template."""

MIN_SHARE_NESTED = 0.5
"""Share of the rows that must have it. What is applied twice, is so to all of them."""

MIN_TWICE = 8
"""Rows that must begin so. By reasoning: one or two may be texts that quote the token."""

MIN_SHARE_TWICE = 0.5
"""Share of the rows that must begin so. What a template or a tokenizer does, it does to all of them."""


class GenerationPromptTaught(Check):
    """Training rows end with an empty assistant turn, which a generation prompt opens.

    ## Why is this a bug?
    `add_generation_prompt=True` writes the beginning of the assistant's next turn, for the model to continue. In a
    training row, the answer is already there: the model is taught that a new, empty turn of its own follows its answer,
    and in use it keeps talking to itself.

    ## What to do
    Call `apply_chat_template(messages, add_generation_prompt=False)` for training rows; use True only for prompts.

    ## When it is right
    Rows that are only prompts, with answers sampled during the training (as in GRPO), have no labels and are not
    checked.

    ## References
    - https://huggingface.co/docs/transformers/chat_templating#add_generation_prompt
    """

    new_since = "0.2.0"

    def judge(self, fact: TurnsTaught) -> Verdict:
        if not fact.texts:
            return NOTHING_TO_JUDGE
        if fact.open < MIN_OPEN or fact.open < MIN_SHARE_OPEN * fact.texts:
            return HELD
        return Found(
            expected="training rows that end with the assistant's answer",
            observed=f"{fact.open} of {fact.texts} rows end right where an assistant turn begins",
        )


class TemplateTwice(Check):
    """The chat template is applied twice, so one turn begins right inside another.

    ## Why is this a bug?
    The script passes a rendered conversation as the content of a message, and the template renders it again: the words
    of the first template become words that somebody says. The model learns a form that no server will ever send it.

    ## What to do
    Apply the template once: give a trainer either messages or a rendered text (`dataset_text_field`), not a rendered
    text as a message.

    ## When it is right
    Messages that are empty on purpose.

    ## References
    - https://huggingface.co/docs/trl/dataset_formats
    """

    new_since = "0.2.0"

    def judge(self, fact: TurnsTaught) -> Verdict:
        if not fact.rows:
            return NOTHING_TO_JUDGE
        if fact.nested < MIN_NESTED or fact.nested < MIN_SHARE_NESTED * fact.rows:
            return HELD
        return Found(
            expected="text between the start of one turn and the start of the next",
            observed=f"in {fact.nested} of {fact.rows} rows a turn begins right after the start of another, with no "
            "text in between",
        )


class StartMissing(Check):
    """The tokenizer begins texts with a begin-of-text token (BOS), but no training row has it.

    ## Why is this a bug?
    A model that was pretrained with a begin-of-text token (BOS) at the beginning of each text attends to it from
    everywhere. Rows that are put together from parts, tokenized with `add_special_tokens=False`, or written by a
    template without it, lack it; whatever serves the model later adds it again.

    ## What to do
    Put `tokenizer.bos_token_id` at the start of each row that begins a text, or let the tokenizer or the chat template
    add it.

    ## When it is right
    A model that is trained from scratch, or that knows no such token. If any of the rows has one, nothing is reported.

    ## References
    - https://huggingface.co/docs/transformers/chat_templating
    """

    severity = "warning"
    new_since = "0.2.0"

    def judge(self, fact: StartsTaught) -> Verdict:
        if fact.begun:
            return HELD
        return Found(
            expected=f"rows that begin with {fact.start!r}, as the tokenizer begins a text",
            observed=f"none of the {fact.rows} rows looked at has {fact.start!r}",
        )


class StartTwice(Check):
    """Texts begin with two begin-of-text tokens.

    ## Why is this a bug?
    The chat template writes the begin-of-text token into the text, and the tokenizer puts another in front of it, as it
    does by default. In training the model gets used to two; whatever serves it later gives it one, and the first
    tokens of an answer are worse for it.

    ## What to do
    Tokenize rendered text with `add_special_tokens=False`, or let `apply_chat_template(tokenize=True)` do both steps;
    for TRL, pass the messages themselves instead of rendered text.

    ## When it is right
    When the model was pretrained on two such tokens. The tokenizer or the model's configuration says which token begins
    a text; rows that are padded with the same token are not checked.

    ## References
    - https://huggingface.co/docs/transformers/chat_templating
    - https://github.com/huggingface/trl/issues/1400
    """

    def judge(self, fact: StartsDoubled) -> Verdict:
        if fact.twice < MIN_TWICE or fact.twice < MIN_SHARE_TWICE * fact.rows:
            return HELD
        return Found(
            expected="one begin-of-text token (BOS) at the start of a text",
            observed=f"{fact.twice} of {fact.rows} rows begin with two BOS tokens (id {fact.start})",
            update=fact.update,
        )
