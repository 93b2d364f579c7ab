from __future__ import annotations

from typing import Any
from weakref import ref

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import StepBegins, TrainerMade
from harness.watch.monitor import Monitor


class ReferenceIsAnother(Check):
    """The reference of a preference trainer is not what the policy begins as.

    ## Why is this a bug?
    DPO, KTO and their like measure how far the policy has moved from its reference. A reference with other weights (the
    base checkpoint instead of the model that was just fine-tuned) makes that distance large before the first update:
    the rewards do not begin at 0, and the loss first pulls the policy back to what it was before its fine-tuning. The
    same happens if `ref_model` is left out and the trainer loads the reference from the path that the policy once came
    from.

    ## What to do
    Give the trainer a copy of what is trained: `ref_model=copy.deepcopy(model)`, or save the fine-tuned model and load
    the policy from there.

    ## When it is right
    When another model is the reference on purpose. A model with an adapter is compared with itself without the adapter,
    and is not looked at.

    ## References
    - https://huggingface.co/docs/trl/dpo_trainer
    - https://github.com/huggingface/trl/issues/1340
    """

    severity = "warning"
    status = "new"
    needs = "trainer with a reference model"

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
        self.looked = True
        others = [name for name in mine if not _same(mine[name], theirs[name])]
        if others:
            self.found(
                expected="a reference model that is what the policy begins as",
                observed=f"before the first update {len(others)} of {len(mine)} tensors of the policy differ from the "
                f"reference's, {others[0]} among them",
                where=where,
                update=self.monitor.update,
            )


def _bare(name: str) -> str:
    return name.removeprefix("module.")


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype == other.dtype and one.device == other.device:
        return torch.equal(one, other)
    return torch.allclose(one.detach().float().cpu(), other.detach().float().cpu(), rtol=1e-2, atol=1e-4)
