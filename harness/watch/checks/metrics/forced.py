"""Scores of texts of which the model was given each token before it said the next."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness.watch.bounded import MOST
from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.events import Backward, End, Forward, Generated, LossCall, Reported
from harness.watch.facts.labels_given import has_decoder
from harness.watch.facts.reported_numbers import OTHERS, numbers_in
from harness.watch.facts.twins import DIFFERENT, Twin, detached, probing
from harness.watch.run.batches import tensors_in

MIN_FORCED = 16
"""Rows that must have been scored so. By reasoning: fewer may be examples that are printed."""

OF_TEXTS = re.compile(r"bleu|rouge|chrf|meteor|\b[wc]er\b|exact.?match|edit.?dist")
"""Names of scores that compare whole texts."""

OF_TOKENS = re.compile(r"acc|correct|\bhits?\b")
"""Names of scores that may compare whole texts, or tokens one by one."""

WRITERS = re.compile(r"(generate|greedy|beam_search|translate|inference)")
"""How methods begin that write a text."""


class ScoredWithTargetsGiven(Check):
    """The score of texts is reported of a model that was given the targets, and wrote no text.

    ## Why is this a bug?
    In training, a decoder is given the true tokens up to each place, and says the next one (teacher forcing). Where
    it is used, it goes on from its own tokens, and one mistake makes others. BLEU, exact matches or the best checkpoint
    by what it says under teacher forcing are far better than those of the texts that it writes.

    ## What to do
    Have the model write: `predict_with_generate=True` in Seq2SeqTrainingArguments, or your model's own method, and
    score what it wrote.

    ## When it is right
    A loss, or a perplexity, is of the targets that are given, and is never reported; an accuracy is only if the model
    has a method that writes (`generate`, `greedy…`, `translate…`) and nothing calls it. Ignore this warning if an
    accuracy of single tokens is what you mean, and say so in its name.

    ## References
    - https://huggingface.co/docs/transformers/tasks/summarization
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "evaluation of an encoder-decoder model that is given the targets"

    def begin(self) -> None:
        self._taught = WeakKeyDictionary[nn.Module, str]()
        """Models to the argument that has the texts that they are taught."""
        self._plain = WeakKeyDictionary[nn.Module, list[Any]]()
        """What else they were given then: how often they go on from their own tokens, perhaps."""
        self._left = 16  # calls that are looked at until one shows what a model is taught: each waits for its device
        self._compared = 0
        """Calls without a graph: of the first, texts are compared by value, for which a script waits; then by shape."""
        self._parts = WeakSet[nn.Module]()
        """All modules of those models."""
        self._rows, self._moment = 0, -1
        """Rows that were scored with their targets given, and the updates made before the latest of them."""
        self._writes = False
        """Whether a text was written, or may have been."""
        self._depends: bool | None = None
        """Whether what a model says depends on the targets that it is given, where it was asked."""
        self._where: str | None = None
        self._name = ""

    def on_backward(self, event: Backward) -> None:
        for forward in event.forwards if event.at.sampled and not self._writes and self._left else ():
            if forward.gradients and forward.model not in self._taught:
                self._left -= 1
                name = _taught(forward, event.losses)
                if name is not None:
                    self._taught[forward.model], self._plain[forward.model] = name, _plain(forward)
                    self._parts.update(forward.model.modules())

    def on_forward(self, event: Forward) -> None:
        if event.gradients or self._writes or event.model not in self._parts:
            return
        given = event.tensors.get(self._taught.get(event.model, ""))
        self._compared += 1
        by_value = self._compared <= MOST
        if given is None or not _is_of_batch(given, event, by_value) or _plain(event) != self._plain[event.model]:
            self._writes = True  # perhaps: its parts are called by themselves, or it is given what it has written
            return
        if self._depends is None:
            self._depends = self._is_moved(event, given)
        if self._depends:
            self._rows, self._moment, self._where = self._rows + len(given), event.at.updates_made, event.where

    def _is_moved(self, event: Forward, given: torch.Tensor) -> bool:
        """Whether it says something else where the texts of the rows are exchanged."""
        with probing(self.monitor, "whether a model reads the targets that it is given"):
            twin, other = Twin(event.model), given.detach().roll(1, 0)
            args, kwargs = detached(event.args), dict(detached(event.kwargs))
            said = twin.logits(args, kwargs)
            exchanged = [other if each is given else each for each in event.args]
            named = {key: other if value is given else value for key, value in event.kwargs.items()}
            then = twin.logits(detached(tuple(exchanged)), dict(detached(named)))
            if said is not None and then is not None and said.shape == then.shape:
                return bool((said - then).abs().max() > DIFFERENT * said.abs().max())
        return False

    def on_generated(self, event: Generated) -> None:
        self._writes = True

    def on_reported(self, event: Reported) -> None:
        if not self._rows or self._writes or self._name or self._moment != event.at.updates_made:
            return
        patterns = [OF_TEXTS, *[OF_TOKENS] * any(map(_has_writer, self._taught))]
        names = [each.name for each in numbers_in(event.text) if not OTHERS.search(each.name)]
        self._name = next((name for name in names if any(each.search(name) for each in patterns)), "")

    def on_end(self, event: End) -> None:
        if self._rows or self._writes:
            self.says(self.judge(self._rows, self._name, writes=self._writes), self._where)

    @staticmethod
    def judge(rows: int, name: str, *, writes: bool) -> Verdict:
        """Rows of which the model was given the targets, the name of a score of texts that was then reported, and
        whether it ever wrote one."""
        if writes:
            return Held("the model writes texts of its own")
        if rows < MIN_FORCED or not name:
            return NOTHING_TO_JUDGE
        return Found(
            expected=f"{name} of texts that the model writes",
            observed=f"in each of {rows} evaluated rows it was given the true tokens, and it wrote no text",
        )


def _taught(forward: Forward, losses: Iterable[LossCall]) -> str | None:
    """The argument with the texts that a model is taught to say of other ones."""
    texts = {name: each for name, each in forward.tensors.items() if _is_text(each)}
    if has_decoder(forward.model):
        return "labels" if "labels" in texts else None
    targets = [call.target for call in losses if not call.target.is_floating_point()]
    for name, text in texts.items():
        sources = any(_is_source(other) for key, other in forward.tensors.items() if key != name)
        if sources and any(_is_said_of(text, target) for target in targets):
            return name
    return None


def _is_said_of(text: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether these are its tokens, or those that follow each; rows may be in either dimension."""
    ways: list[tuple[torch.Tensor, torch.Tensor]] = [(each, target) for each in (text, text[:, 1:], text[1:])]
    if target.numel() == text.numel():
        ways.append((text[:, 1:], target.reshape(text.shape)[:, :-1]))
    return any(one.numel() == other.numel() and torch.equal(one.flatten(), other.flatten()) for one, other in ways)


def _is_text(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2 and not tensor.is_floating_point() and min(tensor.shape) > 2


def _is_source(tensor: torch.Tensor) -> bool:
    """Whether a text, or a sound, is said of this: neither a mask nor the places of tokens, as language models have."""
    if tensor.is_floating_point():
        return tensor.dim() > 2
    return _is_text(tensor) and int(tensor.max()) > 1 and bool((tensor.diff(dim=1) < 0).any())


def _has_writer(model: nn.Module) -> bool:
    """Whether a model of the script's own has a method that writes texts."""
    return not has_decoder(model) and any(map(WRITERS.match, dir(type(model))))


def _plain(forward: Forward) -> list[Any]:
    return [each for each in (*forward.args, *forward.kwargs.values()) if isinstance(each, (bool, int, float, str))]


def _is_of_batch(given: torch.Tensor, event: Forward, by_value: bool) -> bool:
    """Whether a model was given a tensor of the batch, or that without its last token."""
    for _, tensor in tensors_in(event.batch.data) if event.batch is not None else ():
        for each in (tensor, tensor[:, :-1], tensor[:-1]) if tensor.dim() == 2 else ():
            if each.shape == given.shape and (not by_value or torch.equal(each.to(given.device), given)):
                return True
    return False
