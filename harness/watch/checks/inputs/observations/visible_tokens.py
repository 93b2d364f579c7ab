"""Visible tokens: whether a language model is shown what it is to say, asked of a copy of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from harness.watch.events import Fact, logits_in
from harness.watch.facts.next_tokens import TokenLoss, TokensTaught, by_place
from harness.watch.facts.trained_models import all_equal
from harness.watch.facts.twins import Refused, Twin, differ, mapped, probing, with_another
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import tensors_in

ASKED_PLACES = 4
"""Places of all rows that are asked whether the training shows them: by reasoning, where a model is taught to say what
it was not shown, a part of the tokens large enough to be among these is hidden."""


class TargetShown(Fact):
    """A language model was asked whether it is shown what it is to say. ``where`` its loss is computed."""

    needs = "known loss of input tokens"
    ahead: int
    """How many tokens further on the target of a place is than the place."""
    visible: bool | None
    """Whether the logits of a place depend on the token that is its target; None where that cannot be told."""
    called: str | None = None
    """Where the model is called."""


class VisibleTokens(Recogniser):
    """Asks each model once."""

    makes = (TargetShown,)

    def begin(self) -> None:
        self._asked: WeakSet[nn.Module] = WeakSet()

    def on_taught(self, fact: TokensTaught) -> None:
        for taught in fact.losses:
            model = taught.forward.model
            if taught.ahead > 1 or model in self._asked:
                continue
            self._asked.add(model)
            if taught.forward.kwargs.get("past_key_values") is None:
                self._ask(taught)

    def _ask(self, taught: TokenLoss) -> None:
        target = None
        with probing(self.monitor, f"whether {type(taught.forward.model).__name__} sees the tokens that it predicts"):
            target = _sees_next(taught) if taught.ahead else _repeats(taught)
        called = taught.forward.where
        self.tell(TargetShown(ahead=taught.ahead, visible=target, called=called, where=taught.where))


def _sees_next(taught: TokenLoss) -> bool | None:
    """Whether a place has other logits when the token behind it is another; None where that says nothing."""
    asked = _asked(taught)
    if asked is None:
        return None
    sees = asked.sees(1)
    if asked.codes_changed or not (sees or asked.sees(0)):
        return None  # an autoencoder's decoder is told of the token by the code; a head of zeros says nothing yet
    return sees


def _repeats(taught: TokenLoss) -> bool | None:
    """Whether what a model is to say at a place is what it is shown there; None where that says nothing.

    It is where a place sees its own token and the one before, and none behind, and where the training hides no token
    from the model, as that of a denoiser does.
    """
    asked = _asked(taught)
    if asked is None:
        return None
    own, before, behind = (asked.sees(offset) for offset in (0, -1, 1))
    if behind is None or not (own or before or behind):
        return None  # a head that begins at 0 says nothing yet
    if behind or not (own and before):
        return False
    in_training = _asked(taught, training=True)
    return None if in_training is None else in_training.sees_everywhere()


def _asked(taught: TokenLoss, *, training: bool = False) -> _Probed | None:
    """A copy that can be asked, in eval mode or as it trains; None where its rows cannot be told from its places."""
    if taught.tokens.shape[0] != taught.tokens.shape[1]:
        return _Probed(taught, training)
    for masks in (True, False):  # what has a number for each row and place may be one for each two places
        try:
            return _Probed(_without_last_row(taught, masks), training)
        except Refused:
            continue
    return None


class _Probed:
    """A copy of a model, which is asked what the logits of a place depend on."""

    def __init__(self, taught: TokenLoss, training: bool) -> None:
        self._taught = taught
        model = taught.forward.model
        self._twin = Twin(getattr(model, "_orig_mod", model), as_it_trains=training)  # not what torch.compile made
        self._draws = training
        self._states = _Placeless(self._twin.model, taught.tokens, taught.time)
        self._places: list[int] = taught.counted.any(1 - taught.time).nonzero().flatten().tolist()
        first, self._codes = self._given(taught.tokens)
        again, _ = self._given(taught.tokens)
        self._logits = first if first is not None and again is not None and torch.equal(first, again) else None
        self.codes_changed = False
        """Whether another token changed what the model keeps of a whole row."""

    def _given(self, tokens: torch.Tensor) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
        if self._draws:
            torch.manual_seed(0)
        given = with_another(self._taught.forward, self._taught.tokens, tokens)
        logits = self._twin.logits(*given)
        if logits is not None and logits_in(self._taught.forward.output) is None:
            logits = by_place(logits, tokens, self._taught.time)
        return logits, self._states.taken()

    def sees(self, offset: int) -> bool | None:
        """Whether a place in the middle has other logits in a row when the token so far behind it is another."""
        sees = self._sees(self._places[len(self._places) // 2], offset) if self._places else None
        return None if sees is None else bool(sees.any())

    def sees_everywhere(self) -> bool | None:
        """Whether each of a few places has other logits in all rows when its own token is another."""
        places = self._places[:: max(1, len(self._places) // ASKED_PLACES)][:ASKED_PLACES]
        sees = [each for place in places if (each := self._sees(place, 0)) is not None]
        return all(bool(each.all()) for each in sees) if sees else None

    def _sees(self, at: int, offset: int) -> torch.Tensor | None:
        """(rows with a target,): whether the logits are others; None where they never repeat."""
        taught = self._taught
        if self._logits is None or not 0 <= at + offset < taught.tokens.shape[taught.time]:
            return None
        logits, codes = self._given(_with_another_token(taught, at + offset))
        self.codes_changed |= not all_equal(self._codes, codes)
        if logits is None:
            return None
        rows = taught.counted.select(taught.time, at)
        return differ(self._logits.select(taught.time, at)[rows], logits.select(taught.time, at)[rows])


def _without_last_row(taught: TokenLoss, masks: bool) -> TokenLoss:
    """``masks`` says whether what is no whole number has rows, too."""
    shape, rows = taught.tokens.shape, 1 - taught.time

    def cut(value: torch.Tensor) -> torch.Tensor:
        has_rows = value.shape == shape and (masks or value.dtype in (torch.int32, torch.int64))
        return value.detach().narrow(rows, 0, shape[rows] - 1) if has_rows else value.detach()

    tokens, forward = cut(taught.tokens), taught.forward
    args, kwargs = (
        mapped(given, lambda value: tokens if value is taught.tokens else cut(value))
        for given in (forward.args, forward.kwargs)
    )
    forward = replace(forward, args=args, kwargs=kwargs)
    counted = taught.counted.narrow(rows, 0, shape[rows] - 1)
    return replace(taught, forward=forward, tokens=tokens, counted=counted)


def _with_another_token(taught: TokenLoss, place: int) -> torch.Tensor:
    """The tokens, with another one in each row at that place."""
    tokens = taught.tokens.clone()
    words = torch.unique(tokens[taught.counted])
    at = tokens.select(taught.time, place)
    at.copy_(words[(torch.searchsorted(words, at.contiguous()).clamp(max=len(words) - 1) + 1) % len(words)])
    return tokens


class _Placeless:
    """What the modules of a model give that has no places: states of a whole row, such as a code."""

    def __init__(self, model: nn.Module, tokens: torch.Tensor, time: int) -> None:
        rows, length = tokens.shape[1 - time], tokens.shape[time]
        self._lengths = {length, length - 1}
        """Length of the tokens, and of what goes in where the model divides them into that and its targets."""
        self._alls = {rows * each for each in self._lengths}
        self._seen: list[torch.Tensor] = []
        for module in model.modules():
            module.register_forward_hook(self._see)

    def _see(self, module: nn.Module, args: Any, output: Any) -> None:
        for _, tensor in tensors_in(output):
            if tensor.is_floating_point() and tensor.dim() > 1 and not self._has_places(tensor):
                self._seen.append(tensor)

    def _has_places(self, tensor: torch.Tensor) -> bool:
        return (tensor.dim() > 2 and not self._lengths.isdisjoint(tensor.shape)) or len(tensor) in self._alls

    def taken(self) -> list[torch.Tensor]:
        seen, self._seen = self._seen, []
        return seen
