"""Targets of losses: which of them are left out, and whether those of a regression are all one integer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from harness.watch.bus import Recogniser
from harness.watch.events import BackwardBegins, Fact, Forward, LossCall
from harness.watch.facts.batches import tensors_in

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MIN_SHARE = 0.5
"""Smallest share of the targets within a row that must be ignored. The tag of all other words is more often, and parts
of words and marks that are left out are fewer. Half or double of it changes verdicts (docs/detection.md)."""

REGRESSIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@dataclass(frozen=True, eq=False, kw_only=True)
class TargetsIgnored(Fact):
    """A loss was given rows of targets of which some are ignored, or which might be."""

    needs = "loss over rows of labels of which some are ignored"
    in_windows = "first"
    index: int
    """The target that is ignored."""
    classes: int
    targets: int
    ignored: int
    """Of the targets."""
    between: int = 0
    """Of these, those with others before and after them in their row."""
    times: int = 0
    """Calls so far in which a class of the model was ignored between others often; 0 where the index is no class."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionTargets(Fact):
    """The loss of a regression was differentiated alone."""

    needs = "regression over a DataLoader"
    in_windows = "first"
    function: str
    value: float | None = None
    """What all targets have been so far."""
    batches: int = 0
    """With these targets, which hold them as integers; 0 where this one brought none, or they differ."""
    rows: int = 0


class IgnoredTargets(Recogniser):
    makes = (TargetsIgnored,)
    _times = 0

    def on_loss(self, event: LossCall) -> None:
        index = event.options.get("ignore_index", -100)
        if event.function not in ("cross_entropy", "nll_loss") or not event.at.sampled:
            return
        classes = event.input.shape[1] if event.input.dim() > 1 else len(event.input)
        called = self.monitor.forwards[-1:]
        rows = _rows(event.target.detach(), called)
        if rows is None:
            return
        taught, between = rows != index, 0
        ignored = int((~taught).sum())
        is_class = 0 <= index < classes and not any(_has_vocabulary(each.model, classes) for each in called)
        if is_class:
            seen_before, seen_after = taught.cumsum(1) > 0, taught.flip(1).cumsum(1).flip(1) > 0
            between = int((~taught & seen_before & seen_after).sum())
            self._times += between > 0 and between >= MIN_SHARE * (between + int(taught.sum()))
        if ignored or is_class:
            self.tell(
                TargetsIgnored(
                    index=index,
                    classes=classes,
                    targets=rows.numel(),
                    ignored=ignored,
                    between=between,
                    times=self._times if is_class else 0,
                    where=event.where,
                )
            )


def _rows(target: torch.Tensor, forwards: list[Forward]) -> torch.Tensor | None:
    """(rows, tokens) of targets that may have been given flat; None where they are no such rows."""
    if target.dim() == 2:
        return target
    logits = forwards[0].logits if forwards else None
    if target.dim() == 1 and logits is not None and logits.dim() == 3 and logits.shape[:2].numel() == len(target):
        return target.reshape(logits.shape[:2])
    return None


def _has_vocabulary(model: nn.Module, classes: int) -> bool:
    return any(isinstance(each, nn.Embedding) and each.num_embeddings == classes for each in model.modules())


class TargetsOfRegressions(Recogniser):
    makes = (RegressionTargets,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._value: float | None = None
        """Of all targets so far."""
        self._batches = self._rows = 0
        self._varied = False
        self._batch: int | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self._varied or event.inside_step or event.batch is None or not event.at.sampled:
            return
        calls = [call for call in event.losses if call.function in REGRESSIONS]
        if not len(calls) == len(event.losses) == 1:
            return
        (call,) = calls
        told = RegressionTargets(function=call.function, where=call.where)
        if event.batch.number != self._batch and _came_as_integers(call.target, event.batch.data):
            self._batch = event.batch.number
            told = self._with(call, told)
        self.tell(told)

    def _with(self, call: LossCall, told: RegressionTargets) -> RegressionTargets:
        target = call.target.detach()
        lowest, highest = float(target.min()), float(target.max())
        if lowest != highest or self._value not in (None, lowest):
            self._varied = True
            return told
        self._value = lowest
        self._batches += 1
        self._rows += target.numel()
        return replace(told, value=lowest, batches=self._batches, rows=self._rows)


def _came_as_integers(target: torch.Tensor, data: Any) -> bool:
    """Whether a batch holds these numbers as integers."""
    found = [each for _, each in tensors_in(data) if each.numel() == target.numel() and len(each) == len(target)]
    integers = [each for each in found if not each.is_floating_point()]
    return len(found) == len(integers) == 1 and torch.equal(
        integers[0].reshape(-1).to(target), target.detach().reshape(-1)
    )
