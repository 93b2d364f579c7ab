"""Next tokens: which token of its input a language model is taught to say at each place.

Where a loss of torch.nn.functional is called with the model's logits, its targets say so. A model that computes its own
loss in chunks or in one kernel (TRL's ``chunked_nll``, Liger) gives no logits back: the labels that it was given say
so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.watch.events import IGNORED, Backward, BackwardBegins, Fact, Forward, LossCall, logits_in
from harness.watch.host import on_host, together
from harness.watch.recogniser import Recogniser

NOT_TOKENS = ("labels", "mask", "type", "position", "segment")
"""What is in the names of whole numbers for each token that are no tokens."""

DECODED = ("tgt", "trg", "target", "decoder")
"""What is in the name of the tokens of a decoder, where a model is given others as well."""

MAX_AHEAD = 2
"""Tokens ahead up to which a target is looked for: by reasoning, 0 is the token itself, 1 the next, 2 one too far."""

MIN_TARGETS = 16
"""Targets that must agree, on MIN_DIFFERENT tokens at least: by reasoning, others agree by chance in some rows only."""

MIN_DIFFERENT = 4


GIVEN = {"shift_labels": 0, "labels": 1}
"""Names of the labels that a causal model of transformers is given, and how far it shifts them itself."""


@dataclass(frozen=True, eq=False)
class TokenLoss:
    """A loss whose targets are tokens of the model's own input."""

    forward: Forward
    call: LossCall | None
    """None where the model has computed it in a way of its own."""
    tokens: torch.Tensor
    """(rows, tokens), or (tokens, rows) where ``time`` is 0."""
    time: int
    """The dimension along which the tokens follow one another."""
    ahead: int
    """How many tokens further on the target of a place is than the place."""
    counted: torch.Tensor
    """Mask in the shape of ``tokens``: the places that have a target."""
    first: int = 0
    """The first place that has a loss of its own."""

    def weighed(self, gradient: torch.Tensor) -> TokenLoss:
        """Without the places whose loss has a weight of 0 in what is differentiated, as behind a mask by hand.

        ``gradient`` is that of the call's value, which has a loss for each place.
        """
        rows, time = self.tokens.shape[1 - self.time], self.time
        length = gradient.numel() // rows
        weights = gradient.detach().reshape((rows, length) if time else (length, rows))
        span = min(length, self.counted.shape[time] - self.first)
        counts = torch.zeros_like(self.counted)
        counts.narrow(time, self.first, span).copy_(weights.narrow(time, 0, span) != 0)
        return replace(self, counted=self.counted & counts)

    @property
    def where(self) -> str | None:
        return self.forward.where if self.call is None else self.call.where

    @property
    def is_target(self) -> torch.Tensor:
        """Mask in the shape of ``tokens``: the tokens that are the target of a place."""
        targets = torch.zeros_like(self.counted)
        length = self.counted.shape[self.time] - self.ahead
        targets.narrow(self.time, self.ahead, length).copy_(self.counted.narrow(self.time, 0, length))
        return targets


class TokensTaught(Fact):
    """A backward pass begins of losses that teach tokens of the model's own input. ``where`` is the first of them."""

    needs = "known loss of input tokens"
    in_windows = "first"
    losses: Sequence[TokenLoss]


class NextTokens(Recogniser):
    """What the losses of the backward pass at hand teach, as far as its tensors are looked at."""

    makes = (TokensTaught,)

    def begin(self) -> None:
        self.taught: list[TokenLoss] = []

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self.taught = []
        if not self.monitor.is_sampled():
            return
        for forward in event.forwards:
            if forward.gradients and logits_in(forward.output) is None and (calls := forward.losses or event.losses):
                self.taught += [taught for call in calls for taught in _taught_within(forward, call)]
            elif forward.logits is not None and forward.logits.dim() == 3:
                calls = [call for call in event.losses if call.of_classes]
                self.taught += [taught for call in calls for taught in _taught(forward, forward.logits, call)]
            elif forward.logits is None and forward.loss is not None and forward.gradients:
                self.taught += _taught_by_labels(forward)
        if self.taught:
            self.tell(TokensTaught(losses=self.taught, where=self.taught[0].where))

    def on_backward(self, event: Backward) -> None:
        self.taught = []


def _given_tokens(forward: Forward, targets: torch.Tensor) -> tuple[torch.Tensor | None, bool]:
    """The tokens that a model was given, and whether they are the targets; None where it is not clear which they are.

    A decoder's where it has one. Who gives the targets as well gives them by a name that says so.
    """
    given = {name: tensor for name, tensor in forward.tensors.items() if _may_be_tokens(name, tensor)}
    found = {name: tensor for name, tensor in given.items() if not _are_these(tensor, targets)}
    are_targets = bool(given) and not found
    if are_targets:
        found = {name: tensor for name, tensor in given.items() if not any(word in name for word in DECODED)}
    elif len(found) > 1:
        found = {name: tensor for name, tensor in found.items() if any(word in name for word in DECODED)}
    return next(iter(found.values())) if len(found) == 1 else None, are_targets


def _are_these(given: torch.Tensor, targets: torch.Tensor) -> bool:
    if given.numel() != targets.numel():
        return False
    given, targets = together(given, targets)
    return torch.equal(given.flatten(), targets.flatten())


def _taught(forward: Forward, logits: torch.Tensor, call: LossCall) -> Iterator[TokenLoss]:
    ignored = call.ignored
    tokens, are_targets = _given_tokens(forward, call.target)
    if ignored is None or tokens is None or tokens.shape != logits.shape[:2]:
        return
    for time in (1, 0):
        targets, first = _placed(logits.detach(), call, time) or (None, 0)
        if targets is None:
            continue
        agrees = [_agree(tokens, targets, time, first + ahead, ignored) for ahead in range(MAX_AHEAD + 1)]
        for ahead, agree in enumerate(agrees[:1] if are_targets else agrees):
            if agree is not None and (ahead or agrees[1] is None):  # rows of one token each agree with all shifts
                counted = torch.zeros_like(tokens, dtype=torch.bool)
                counted.narrow(time, first, agree.shape[time]).copy_(agree, non_blocking=True)
                yield TokenLoss(forward, call, tokens, time, ahead, counted, first)


def by_place(logits: torch.Tensor, tokens: torch.Tensor, time: int) -> torch.Tensor | None:
    """Logits, (…, classes), as the tokens are shaped, with the classes behind; None where they are of other places.

    They may be of one place fewer than the tokens, where the model divides these into what goes in and its targets.
    """
    rows = tokens.shape[1 - time]
    length = logits.shape[:-1].numel() // rows
    shape = (rows, length) if time else (length, rows)
    if logits.dim() not in (2, 3) or length not in (tokens.shape[time] - 1, tokens.shape[time]):
        return None
    if logits.shape[:-1] not in (shape, (rows * length,)):
        return None
    return logits.reshape(*shape, -1)


def _taught_within(forward: Forward, call: LossCall) -> Iterator[TokenLoss]:
    """Losses of a model that computes them within its forward and gives no logits."""
    ignored = call.ignored
    if ignored is None:
        return
    given = {id(tensor): tensor for name, tensor in forward.tensors.items() if _may_be_tokens(name, tensor)}
    others = [tensor for tensor in given.values() if not _are_these(tensor, call.target)]
    for tokens in others or list(given.values())[:1]:
        for time in (1, 0):
            logits = by_place(call.input.detach().movedim(1, -1), tokens, time)
            if logits is None or call.target.numel() != logits.shape[:2].numel():
                continue
            targets = on_host(call.target).reshape(logits.shape[:2])
            agrees = [_agree(tokens, targets, time, ahead, ignored) for ahead in range(MAX_AHEAD + 1)]
            for ahead, agree in enumerate(agrees):
                if agree is not None and (ahead or agrees[1] is None):
                    counted = torch.zeros_like(tokens, dtype=torch.bool)
                    counted.narrow(time, 0, agree.shape[time]).copy_(agree, non_blocking=True)
                    yield TokenLoss(forward, call, tokens, time, ahead, counted)


def _may_be_tokens(name: str, tensor: torch.Tensor) -> bool:
    whole = tensor.dim() == 2 and tensor.dtype in (torch.int32, torch.int64)
    return whole and not any(word in name for word in NOT_TOKENS)


def _taught_by_labels(forward: Forward) -> Iterator[TokenLoss]:
    tokens = forward.tensors.get("input_ids")
    given = next((name for name in GIVEN if name in forward.tensors), None)
    if tokens is None or given is None or tokens.dim() != 2 or forward.tensors[given].shape != tokens.shape:
        return
    targets = on_host(forward.tensors[given])[:, GIVEN[given] :]
    agrees = [_agree(tokens, targets, 1, ahead, IGNORED) for ahead in range(MAX_AHEAD + 1)]
    for ahead, agree in enumerate(agrees):
        if agree is not None and (ahead or agrees[1] is None):
            counted = torch.zeros_like(tokens, dtype=torch.bool)
            counted[:, : agree.shape[1]].copy_(agree, non_blocking=True)
            yield TokenLoss(forward, None, tokens, 1, ahead, counted)


def _placed(logits: torch.Tensor, call: LossCall, time: int) -> tuple[torch.Tensor, int] | None:
    """The targets as the tokens are shaped, and the place of the first, by the logits that the loss was given."""
    rows, classes = logits.shape[1 - time], logits.shape[2]
    if call.target.numel() == 0 or call.target.numel() % rows:
        return None
    length = call.target.numel() // rows
    shape = (rows, length) if time else (length, rows)
    given = call.input.detach()
    if call.function == "nll_loss":
        logits = logits.log_softmax(2)
    if given.dim() == 3 and call.target.shape == shape:
        given = given.transpose(1, 2)  # cross_entropy takes (rows, classes, tokens)
    elif given.dim() != 2:
        return None
    if given.numel() != call.target.numel() * classes:
        return None
    given = given.reshape(*shape, classes)
    places = (0, length // 2, length - 1)
    for first in range(min(2, logits.shape[time] - length + 1)):
        alike = [_same(given.select(time, at), logits.select(time, first + at)) for at in places]
        if bool(torch.stack(alike).all()):  # of which a script waits once
            return on_host(call.target).reshape(shape), first
    return None


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """(): whether numbers of one shape are the same but for rounding."""
    return torch.isclose(one.float(), other.float(), rtol=1e-6, atol=1e-6).all()


def _agree(tokens: torch.Tensor, targets: Any, time: int, shift: int, ignored: int) -> torch.Tensor | None:
    """Which targets are the tokens that are ``shift`` places behind; None where some are others."""
    length = min(targets.shape[time], tokens.shape[time] - shift)
    if length < 1:
        return None
    targets, tokens = targets.narrow(time, 0, length), on_host(tokens).narrow(time, shift, length)
    counted = targets != ignored
    same: torch.Tensor = counted & (targets == tokens.to(targets.device))
    if (
        int(same.sum()) < MIN_TARGETS
        or not torch.equal(same, counted)
        or len(torch.unique(targets[same])) < MIN_DIFFERENT
    ):
        return None
    return same
