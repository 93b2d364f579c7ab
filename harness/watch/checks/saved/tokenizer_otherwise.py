from __future__ import annotations

import os
from dataclasses import replace

from harness import launch
from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.reloads import Reloads, TokenizerKept
from harness.watch.facts.tokens import copied
from harness.watch.monitor import Monitor
from harness.watch.reload import Reloaded, written

LONGEST = 40
"""Characters of a text that are said."""


class TokenizerOtherwise(Check):
    """A saved tokenizer, loaded again, makes other tokens of the texts than the one that was trained with.

    ## Why is this a bug?
    A tokenizer that is saved before its new tokens are added has none of them. Neither has the base's tokenizer, if it
    is saved with the model in place of the one in use. The model then reads several tokens instead of the one that it
    has learnt, and the embeddings that were trained for the new ones are never looked up.

    ## What to do
    Save the tokenizer that made the batches, when all tokens are added and its chat template is set.

    ## When it is right
    A tokenizer that is changed on purpose after the training, and saved before that.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/tokenizer
    """

    status = "new"
    needs = "tokenizer that is saved"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.reloads = monitor.fact(Reloads)

    def on_end(self, event: End) -> None:
        if not self.monitor.stepped or not launch.is_main_process():
            return
        for path, kept in self.reloads.tokenizers.items():
            found = self.reloads.told(path)
            if found is None:
                continue
            if found.tokenizer_error is not None:
                shown = os.path.relpath(path)
                self.monitor.note(
                    f"the tokenizer in {shown} was not loaded again, so it is not judged: {found.tokenizer_error}"
                )
                continue
            texts = self.reloads.texts(kept)
            if (tokenizer := copied(kept.tokenizer)) is not None:
                self.looked = True
                self._compare(os.path.relpath(path), replace(kept, tokenizer=tokenizer), texts, found)

    def _compare(self, shown: str, kept: TokenizerKept, texts: list[str], found: Reloaded) -> None:
        here = [kept.tokenizer(text)["input_ids"] for text in texts]
        other = [(text, now, then) for text, now, then in zip(texts, here, found.tokens, strict=True) if now != then]
        if other:
            text, now, then = min(other, key=lambda each: len(each[0]))
            observed = f"{len(then)} tokens of {text[:LONGEST]!r} where the training had {len(now)}"
            if len(then) == len(now):
                observed = f"other tokens of {text[:LONGEST]!r} than the training had"
        elif getattr(kept.tokenizer, "chat_template", None) and written(kept.tokenizer) != found.talk:
            observed = "another text by its chat template" if found.talk is not None else "it has no chat template"
        else:
            return
        self.found(
            expected="the tokens that the model was trained with",
            observed=f"loaded from {shown} in a new process: {observed}",
            where=kept.where,
            update=kept.update,
        )
