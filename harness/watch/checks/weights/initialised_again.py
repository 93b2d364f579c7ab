from __future__ import annotations

from weakref import WeakSet

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import Forward
from harness.watch.facts.trained_models import ModelsFromCheckpoints, are_alike, pretrained_in
from harness.watch.monitor import Monitor

NEAR = 1e-2
"""How near weights must be to those that were loaded: half precision and back is nearer. Neither half nor double of it
changes a verdict of the corpus."""

MAX_CHANGED = 0.5
"""Largest share of the tensors looked at that may have changed between loading and the first update. Who changes one on
purpose (resized or averaged embeddings) leaves the others. Neither half nor double of it changes a verdict of the
corpus."""


class InitialisedAgain(Check):
    """The weights that a checkpoint gave are initialised again before the first update.

    ## Why is this a bug?
    `from_pretrained` has loaded the weights that the fine-tuning builds on. `model.init_weights()`, `model.apply(init)`
    or `reset_parameters()` for all modules, meant for a new head, throws them away without a word. The loss still
    falls, as it does for a model that is trained from scratch.

    ## What to do
    Call `init_weights()`, `apply()` or `reset_parameters()` on the head alone, or before the checkpoint is loaded.

    ## When it is right
    Weights that the script loads itself with `load_state_dict`, changes after the first update, or makes from those
    that were loaded (the mean of several checkpoints, pruning, embeddings for more words) are not reported, nor is a
    change of less than half of the backbone's tensors.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained
    """

    needs = "pretrained checkpoint"
    formerly = ("weights::backbone-not-from-checkpoint", "weights::backbone-from-checkpoint")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loaded = monitor.fact(ModelsFromCheckpoints)
        self.looked_at: WeakSet[nn.Module] = WeakSet()

    def on_forward(self, event: Forward) -> None:
        if event.model in self.looked_at:
            return
        self.looked_at.add(event.model)
        for module in pretrained_in(event.model):
            self._look_at(module, event)

    def _look_at(self, module: nn.Module, event: Forward) -> None:
        loaded = self.loaded.spread.get(module, [])
        self.looked |= bool(loaded)
        changed = [p for p, value in loaded if not _is_left(p, value)]
        if not self.monitor.stepped and len(changed) > MAX_CHANGED * len(loaded):
            self.found(
                expected="the checkpoint's weights at the first update",
                observed=f"{len(changed)} of {len(loaded)} tensors looked at were changed after they were loaded",
                where=event.where,
                update=1,
            )


def _is_left(parameter: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a tensor has something of what was loaded: initialised again, it is independent of that."""
    if parameter.shape != value.shape:
        return True  # embeddings that were resized
    now, before = parameter.detach().float(), value.to(parameter.device, parameter.dtype).float()
    return torch.allclose(now, before, rtol=NEAR, atol=NEAR**2) or are_alike(now, before)
