"""References: the frozen models that trainers of preferences compare a policy with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from torch import nn

from harness.watch.bus import Recogniser
from harness.watch.events import Fact, StepBegins, TrainerMade

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor


@dataclass(frozen=True, eq=False, kw_only=True)
class ReferenceGiven(Fact):
    """A trainer with a reference model of the policy's build makes its first update. ``where`` made the trainer."""

    needs = "trainer with a reference model"
    tensors: int
    """Of the policy."""
    others: Sequence[str] = ()
    """The names of those that differ from the reference's."""


class References(Recogniser):
    makes = (ReferenceGiven,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
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
