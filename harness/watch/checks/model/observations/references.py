"""References: the frozen models that trainers of preferences compare a policy with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import ref

import torch
from torch import nn

from harness.watch.events import BackwardBegins, Fact, Forward, StepBegins, TrainerMade
from harness.watch.facts.losses import DifferentiatedLoss
from harness.watch.recogniser import Recogniser

LN_2_ATOL = 1e-5
"""How near to ln 2: rounding of float32 and of a mean is below."""


class ReferenceGiven(Fact):
    """A trainer with a reference model of the policy's build makes its first update. ``where`` made the trainer."""

    needs = "trainer with a reference model"
    tensors: int
    """Tensors of the policy."""
    others: Sequence[str] = ()
    """The names of those that differ from the reference's."""


class ReferenceAsked(Fact):
    """A loss is differentiated beside whose forward passes a reference was given as many tokens. ``where`` asked it."""

    needs = "forward passes of a reference beside those that are trained"
    loss: float
    in_a_row: int = 0
    """Such backward passes in a row whose reference has the weights that are trained, and whose loss was ln 2."""


class References(Recogniser):
    makes = (ReferenceGiven,)

    def begin(self) -> None:
        self._trainers: list[tuple[ref[Any], str | None]] = []

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._trainers.append((ref(event.trainer), event.where))

    def on_step_begins(self, event: StepBegins) -> None:
        """Before the first update of each trainer."""
        waiting, self._trainers = self._trainers, []
        for made, where in waiting:
            trainer = made()
            if trainer is None:
                continue
            if getattr(trainer, "optimizer", None) is None or event.number > 1:
                self._trainers.append((made, where))
                continue
            policy, reference = getattr(trainer, "model", None), getattr(trainer, "ref_model", None)
            if isinstance(policy, nn.Module) and isinstance(reference, nn.Module):
                self._compare(policy, reference, where)

    def _compare(self, policy: nn.Module, reference: nn.Module, where: str | None) -> None:
        mine = {_bare(name): tensor for name, tensor in policy.named_parameters()}
        theirs = {_bare(name): tensor for name, tensor in reference.named_parameters()}
        if mine.keys() != theirs.keys():
            return
        others = [name for name in mine if not _same(mine[name], theirs[name])]
        self.tell(ReferenceGiven(tensors=len(mine), others=others, where=where))


def _bare(name: str) -> str:
    return name.removeprefix("module.")


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype == other.dtype and one.device == other.device:
        return torch.equal(one, other)
    return torch.allclose(one.detach().float().cpu(), other.detach().float().cpu(), rtol=1e-2, atol=1e-4)


class ReferencesBeside(Recogniser):
    makes = (ReferenceAsked,)

    def begin(self) -> None:
        self._loss = self.fact(DifferentiatedLoss)
        self._in_a_row = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        value = self._loss.value
        trained = [each for each in event.forwards if each.gradients]
        beside = [each for each in event.forwards if not each.gradients and _is_asked_alike(each, trained)]
        if value is None or not trained or not beside:
            return
        shared = [each for each in beside if any(_share(each.model, other.model) for other in trained)]
        self._in_a_row = self._in_a_row + 1 if shared and abs(value - math.log(2)) < LN_2_ATOL else 0
        self.tell(ReferenceAsked(loss=value, in_a_row=self._in_a_row, where=(shared or beside)[0].where))


def _is_asked_alike(forward: Forward, trained: list[Forward]) -> bool:
    ids = forward.tensors.get("input_ids")
    given = [each.tensors.get("input_ids") for each in trained]
    return ids is not None and any(each is not None and each.shape == ids.shape for each in given)


def _share(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models have the same trainable tensors, and the first goes through them: an adapter may be off."""
    if hasattr(one, "peft_config"):
        return False
    trained = {id(each) for each in other.parameters() if each.requires_grad}
    return bool(trained) and trained <= {id(each) for each in one.parameters()}
