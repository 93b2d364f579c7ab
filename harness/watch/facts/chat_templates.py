"""Chat templates: what the tokenizer's writes before the words of each role, as tokens, and before an answer."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from harness.watch.events import TokenizerMade, TrainerMade
from harness.watch.facts.tokens import copied
from harness.watch.recogniser import Recogniser

ROLES = ("system", "user", "assistant", "tool")
"""Roles that a template is asked for."""

EMPTY = re.compile(r"<(\w+)>\s*</\1>\s*$")
"""A block without words before an answer, as of a model that is not to think: rows that lack it have turns as well."""

WORDS = "zqx"
"""What somebody says, where a template is asked."""


class ChatTemplates(Recogniser):
    """The template of the tokenizer that is trained with: Trainer's own, or the latest."""

    def begin(self) -> None:
        self.tokenizer: Any = None
        self._of_trainer = False
        self._headers: list[tuple[str, list[int]]] | None = None
        self._looked_around = False
        self._copied: tuple[Any, Any] = None, None
        """A tokenizer, and its copy."""

    def on_tokenizer_made(self, event: TokenizerMade) -> None:
        if not self._of_trainer:
            self.tokenizer, self._headers = event.tokenizer, None

    def on_trainer_made(self, event: TrainerMade) -> None:
        """Take the Trainer's own tokenizer: a library may make another one on the way."""
        given = getattr(event.trainer, "processing_class", None)
        given = getattr(given, "tokenizer", given)  # a processor's
        if given is not None:
            self.tokenizer, self._of_trainer, self._headers = given, True, None

    def look_around(self) -> None:
        """Where no tokenizer was made in the watch: that of the Trainer at work, or the only one that is alive.

        Once: to go through all objects at each update would take longer than a small one does.
        """
        if self.tokenizer is not None or self._looked_around:
            return
        self._looked_around = True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and self.tokenizer is None:
            # Read as it is stored: an object of the script's own may answer to any name.
            given = getattr(frame.f_locals.get("self"), "__dict__", {}).get("processing_class")
            self.tokenizer, frame = getattr(given, "tokenizer", given), frame.f_back
        base = getattr(sys.modules.get("transformers"), "PreTrainedTokenizerBase", None)
        if self.tokenizer is None and base is not None:
            alive = [each for each in gc.get_objects() if issubclass(type(each), base)]
            self.tokenizer = alive[0] if len(alive) == 1 else None
        self._headers = None

    @property
    def asked(self) -> Any:
        """A copy of the tokenizer, which is asked in its place; None where there is none."""
        if self._copied[0] is not self.tokenizer:
            self._copied = self.tokenizer, copied(self.tokenizer)
        return self._copied[1]

    @property
    def headers(self) -> list[tuple[str, list[int]]]:
        """(role, tokens) of each role for which the template writes something; empty where there is none."""
        if self._headers is None:
            has_one = getattr(self.tokenizer, "chat_template", None) and self.asked is not None
            self._headers = list(_headers(self.asked)) if has_one else []
        return self._headers

    def turns(self, tokens: Sequence[int]) -> list[tuple[int, str, int]]:
        """(place, role, length) of each header in a row, in their order."""
        return sorted(
            (place, role, len(header))
            for role, header in self.headers
            for place in range(len(tokens) - len(header) + 1)
            if list(tokens[place : place + len(header)]) == header
        )


def _headers(tokenizer: Any) -> Iterator[tuple[str, list[int]]]:
    for role in ROLES:
        first = [] if role in ("system", "user") else [{"role": "user", "content": WORDS}]
        try:
            before = tokenizer.apply_chat_template(first, tokenize=False) if first else ""
            text = tokenizer.apply_chat_template([*first, {"role": role, "content": WORDS}], tokenize=False)
        except Exception:  # noqa: BLE001, S112 - a template says what it wants to in its own way
            continue
        header = text[len(before) :].partition(WORDS)[0] if text.startswith(before) else ""
        header = EMPTY.sub("", header)
        ids = tokenizer(header.strip(), add_special_tokens=False)["input_ids"] if header.strip() else []
        ids = ids[1:] if ids[:1] == [tokenizer.bos_token_id] and len(ids) > 1 else ids
        if ids and not {tokenizer.unk_token_id, tokenizer.pad_token_id}.intersection(ids):
            yield role, ids
