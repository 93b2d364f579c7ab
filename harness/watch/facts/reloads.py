"""Reloads: what the script saved, loaded again in a process of its own when the loop is over."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from harness import launch
from harness.watch.events import Encode, End, Fact, TokenizerSaved
from harness.watch.facts.tokens import copied, texts_given
from harness.watch.recogniser import Recogniser
from harness.watch.reload import Order, Reloaded, loaded_again, written

MOST_PATHS = 2
"""What is loaded again, the latest that was saved: a few seconds each."""

MOST_TEXTS = 4
"""Texts that a tokenizer is asked about."""

LONGEST = 512
"""Characters of a text that are kept."""

MOST_ADDED = 64
"""Tokens that were added, and that it is asked about."""


@dataclass(frozen=True)
class TokenizerKept:
    """A tokenizer that was saved."""

    tokenizer: Any
    """The one that made what the model was given."""
    where: str | None
    update: int


@dataclass(frozen=True)
class _SavedModel:
    order: Order
    args: Sequence[torch.Tensor]
    kwargs: dict[str, torch.Tensor]


class TokenizerReloaded(Fact):
    """A tokenizer that was saved was loaded again in a new process. ``where`` is the save."""

    needs = "tokenizer that is saved"
    path: str
    """Path as it is seen from here."""
    update: int = 0
    """The updates that had been made at the save."""
    apart: tuple[str, int, int] | None = None
    """The shortest text that it gives other tokens, and their numbers here and there."""
    talk: Literal["the same", "another", "none"] = "the same"
    """What its chat template makes of a conversation."""


class Reloads(Recogniser):
    """Loads each path once, whatever the checks want to know of it, and only when the first of them asks."""

    makes = (TokenizerReloaded,)

    def begin(self) -> None:
        self.tokenizers: dict[str, TokenizerKept] = {}
        """Folder to the tokenizer saved there, the latest saved last."""
        self._models: dict[str, _SavedModel] = {}
        self._latest: list[str] = []
        """Paths, in the order in which they were saved."""
        self._texts: dict[int, tuple[Any, list[str]]] = {}
        """The tokenizers that were called, by identity, and what they were given lately."""
        self._told: dict[str, Reloaded] = {}

    def on_encode(self, event: Encode) -> None:
        if event.tokenizer is None or not self.monitor.options.reload.wanted:
            return
        _, texts = self._texts.setdefault(id(event.tokenizer), (event.tokenizer, []))
        for given in list(texts_given(event))[:MOST_TEXTS]:
            texts += [text[:LONGEST] for text in given if isinstance(text, str) and text[:LONGEST] not in texts]
        del texts[:-MOST_TEXTS]

    def on_tokenizer_saved(self, event: TokenizerSaved) -> None:
        """Where one tokenizer was called, and another is saved, the model will be given what that one makes."""
        if not self.monitor.options.reload.wanted:
            return
        path = os.path.abspath(event.folder)
        called = [tokenizer for tokenizer, _ in self._texts.values()]
        tokenizer = called[0] if len(called) == 1 else event.tokenizer
        self.tokenizers.pop(path, None)
        self.tokenizers[path] = TokenizerKept(tokenizer, event.where, self.monitor.updates_made)
        self._is_latest(path)

    def on_end(self, event: End) -> None:
        wanted = self.wants(TokenizerReloaded) and self.monitor.stepped and launch.is_main_process()
        for path, kept in self.tokenizers.items() if wanted else ():
            found, shown = self.told(path), os.path.relpath(path)
            if found is None:
                continue
            if found.tokenizer_error is not None:
                self.monitor.note(
                    f"the tokenizer in {shown} was not loaded again, so it is not judged: {found.tokenizer_error}"
                )
                continue
            texts = self.texts(kept)
            if (tokenizer := copied(kept.tokenizer)) is not None:
                self._compare(shown, replace(kept, tokenizer=tokenizer), texts, found)

    def _compare(self, shown: str, kept: TokenizerKept, texts: list[str], found: Reloaded) -> None:
        here = [kept.tokenizer(text)["input_ids"] for text in texts]
        other = [(text, now, then) for text, now, then in zip(texts, here, found.tokens, strict=True) if now != then]
        text, now, then = min(other, key=lambda each: len(each[0])) if other else ("", [], [])
        talk: Literal["the same", "another", "none"] = "the same"
        if getattr(kept.tokenizer, "chat_template", None) and written(kept.tokenizer) != found.talk:
            talk = "none" if found.talk is None else "another"
        apart = (text, len(now), len(then)) if other else None
        self.tell(TokenizerReloaded(path=shown, update=kept.update, apart=apart, talk=talk, where=kept.where))

    def keep_model(
        self, path: str, order: Order, args: Sequence[torch.Tensor], kwargs: dict[str, torch.Tensor]
    ) -> None:
        """Load a model from here when the loop is over."""
        self._models[path] = _SavedModel(order, args, kwargs)
        self._is_latest(path)

    def texts(self, kept: TokenizerKept) -> list[str]:
        """What a tokenizer is asked: what it was given in the training, and the tokens that were added to it."""
        added = [str(each) for each in kept.tokenizer.get_added_vocab()]
        return [*self._texts.get(id(kept.tokenizer), (None, []))[1], *added[-MOST_ADDED:]]

    def told(self, path: str) -> Reloaded | None:
        """What came of loading a path again; None where it is not among the latest, or is no longer there."""
        if path in self._told:
            return self._told[path]
        if path not in self._latest[-MOST_PATHS:] or not os.path.exists(path):
            return None
        model = self._models.get(path, _SavedModel(Order(), (), {}))
        order = model.order
        if kept := self.tokenizers.get(path):
            template = getattr(kept.tokenizer, "chat_template", None) is not None
            order = replace(order, texts=self.texts(kept), template=template)
        begun = time.perf_counter()
        with suppress(AttributeError, OSError, ValueError):  # there is none, or the script has closed it
            if sys.__stderr__.isatty():  # type: ignore[union-attr]
                name = os.path.basename(path)
                sys.__stderr__.write(f"harness: loading {name} again, as its users will (--no-reload)\n")  # type: ignore[union-attr]
        self._told[path] = loaded_again(path, order, model.args, model.kwargs)
        self.monitor.seconds_reloading += time.perf_counter() - begun
        return self._told[path]

    def _is_latest(self, path: str) -> None:
        self._latest = [*(each for each in self._latest if each != path), path]
