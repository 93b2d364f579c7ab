"""How texts and turns begin and end, as tokenizers and chat templates write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.checks.inputs.observations.turns import StartsDoubled, StartsTaught, TurnsTaught
from harness.watch.events import End, Rendered

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

LAZY_ROW = "LazyRow"
"""The class of what Dataset.map gives a function for each row; it is a mapping."""


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


class ToolsNotShown(Check):
    """The tools of a conversation are not given to the chat template, so the model never sees them.

    ## Why is this a bug?
    Templates write the tools into the text where they are given as `tools=`, and leave them out without a word where
    they are not. The model is taught to call tools that nothing in its text names: it learns the names by heart, and
    calls the same ones whatever it is offered later.

    ## What to do
    Pass them on: `tokenizer.apply_chat_template(messages, tools=row["tools"])`. TRL does so by itself for a dataset
    with a column `tools`.

    ## When it is right
    Tools that the system's or the user's message names are not reported. The tools are known only where they are called
    `tools`, as a variable of the function that calls the template or as a column of its row.

    ## References
    - https://huggingface.co/docs/transformers/chat_extras
    - https://github.com/huggingface/trl/issues/6259
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "conversation with tools that a chat template writes"

    def begin(self) -> None:
        self._rows = self._without = 0
        self._where: str | None = None

    def on_rendered(self, event: Rendered) -> None:
        if not re.search(r"\btools\b", event.template) or not isinstance(event.conversation, list):
            return
        names = {*_tool_names(event.tools)}
        if event.tools is None:
            for variables in self.monitor.locator.variables(2):  # of what calls it, and of what calls that
                rows = [each for each in variables.values() if type(each) is dict or type(each).__name__ == LAZY_ROW]
                names |= {name for each in (variables, *rows) for name in _tool_names(each.get("tools"))}
        if not names:
            return
        self._rows += 1
        if event.tools is None and not names & {*_words_before_an_answer(event.conversation)}:
            self._without += 1
            self._where = self._where or event.where

    def on_end(self, event: End) -> None:
        if self._rows:
            self.says(self.judge(self._rows, self._without), self._where)

    @staticmethod
    def judge(rows: int, without: int) -> Verdict:
        """Conversations with tools, and those whose text has none of them."""
        if without < MIN_OPEN:
            return Held(f"{rows} conversations with tools, {without} of them written without")
        return Found(
            expected="conversations with the tools that the model is to call",
            observed=f"{without} of {rows} conversations with tools were written without them",
        )


def _tool_names(tools: Any) -> Iterator[str]:
    """The names of tools, as schemas or in JSON."""
    if isinstance(tools, str):
        with suppress(ValueError):
            tools = json.loads(tools)
    for each in tools if isinstance(tools, list) else ():
        inner = each.get("function", each) if isinstance(each, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else getattr(each, "__name__", None)
        if isinstance(name, str):
            yield name


def _words_before_an_answer(conversation: list[Any]) -> Iterator[str]:
    for message in conversation:
        if not isinstance(message, dict) or message.get("role") == "assistant":
            return
        yield from re.findall(r"[\w-]+", str(message.get("content")))
