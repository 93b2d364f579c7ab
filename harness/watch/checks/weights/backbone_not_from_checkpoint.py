from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import Forward, FromPretrained
from harness.watch.facts.trained_models import ModelsFromCheckpoints, are_alike, pretrained_in
from harness.watch.monitor import Monitor

MAX_NEW = 0.1
"""Largest share of a backbone's tensors that may be newly initialised. A guess: a pooler or a position table is far
below it, and a missing layer of a usual model above."""

MAX_ADDED = 0.5
"""Largest share of a layer's tensors that may be an addition to what the checkpoint has: a decoder's cross-attention is
four in ten. Where names or classes do not fit, nearly all are new."""

NEAR = 1e-2
"""How near weights must be to those that were loaded: half precision and back is nearer. A guess."""

MAX_CHANGED = 0.5
"""Largest share of the tensors looked at that may have changed between loading and the first update. A guess: who
changes one on purpose (resized or averaged embeddings) leaves the others."""


class BackboneNotFromCheckpoint(Check):
    """The backbone of a model is not what its checkpoint holds: parts are newly initialised, or were changed since.

    ## Why is this a bug?
    What a fine-tuning builds on is in the backbone's weights. Where their names or shapes do not fit (another class, a
    prefix, another number of layers or words), `from_pretrained` initialises them at random and says so in a warning
    among others; where an initialisation runs again after loading, nothing is said at all. The loss falls either way.

    ## What to do
    Compare the names in the checkpoint with the model's: a prefix, or another class or version.

    Call `init_weights()`, `apply()` or `reset_parameters()` on the head alone.

    ## When it is right
    A new head, a new pooler and tied weights are not reported, nor is what each layer has in addition to the
    checkpoint's (cross-attention, adapters), nor are weights that the script loads itself with `load_state_dict`,
    changes after the first update, or makes of those that were loaded (the mean of several checkpoints, pruning).
    Weights that are new on purpose, a layer that is added and then trained for long, are worth an `--ignore`.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained
    """

    id = "weights::backbone-not-from-checkpoint"
    needs = "pretrained checkpoint"
    formerly = ("weights::backbone-from-checkpoint",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loaded = monitor.fact(ModelsFromCheckpoints)
        self.looked_at: WeakSet[nn.Module] = WeakSet()

    def on_from_pretrained(self, event: FromPretrained) -> None:
        info, backbone = event.info, _backbone(event.model)
        mismatched = set(_names(info.get("mismatched_keys", ())))
        lacking = set(_names(info.get("missing_keys", ()))) | mismatched
        tied = set(getattr(event.model, "all_tied_weights_keys", None) or ())
        new = [name for name in backbone if name in lacking and name not in tied and "pooler" not in name]
        new = _without_additions(new, backbone)
        resized = mismatched & set(backbone)
        self.looked |= bool(backbone)
        if backbone and (len(new) > MAX_NEW * len(backbone) or resized):
            new = new or sorted(resized)
            self.found(
                expected="a checkpoint that has the model's backbone",
                observed=f"{len(new)} of its {len(backbone)} tensors are newly initialised, such as {new[0]}; "
                f"{len(list(_names(info.get('unexpected_keys', ()))))} tensors of the checkpoint are not used",
                where=event.where,
            )

    def on_forward(self, event: Forward) -> None:
        if event.model in self.looked_at:
            return
        self.looked_at.add(event.model)
        for module in pretrained_in(event.model):
            self._look_at(module, event)

    def _look_at(self, module: nn.Module, event: Forward) -> None:
        loaded = self.loaded.spread.get(module, [])
        changed = [p for p, value in loaded if not _is_left(p, value)]
        if not self.monitor.stepped and len(changed) > MAX_CHANGED * len(loaded):
            self.found(
                expected="the checkpoint's weights at the first update",
                observed=f"{len(changed)} of {len(loaded)} tensors looked at were changed after they were loaded",
                where=event.where,
                update=1,
                hint="Look for an initialisation that runs again, such as init_weights() or apply().",
            )


def _is_left(parameter: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a tensor has something of what was loaded: initialised again, it is independent of that."""
    if parameter.shape != value.shape:
        return True  # embeddings that were resized
    now, before = parameter.detach().float(), value.to(parameter.device, parameter.dtype).float()
    return torch.allclose(now, before, rtol=NEAR, atol=NEAR**2) or are_alike(now, before)


def _backbone(model: Any) -> list[str]:
    """The names of its parameters: all of them, where the model has no head."""
    prefix = getattr(model, "base_model_prefix", "")
    headed = bool(prefix) and hasattr(model, prefix)
    return [name for name, _ in model.named_parameters() if not headed or name.startswith(f"{prefix}.")]


def _without_additions(new: list[str], backbone: list[str]) -> list[str]:
    """The new tensors but those that every layer has in addition to the checkpoint's: cross-attention, adapters."""
    known = {_in_every_layer(name) for name in set(backbone) - set(new)}
    every = {_in_every_layer(name) for name in backbone}
    if len(every - known) > MAX_ADDED * len(every):
        return new
    return [name for name in new if _in_every_layer(name) in known]


def _in_every_layer(name: str) -> str:
    return ".".join("N" if part.isdigit() else part for part in name.split("."))


def _names(keys: Iterable[Any]) -> Iterable[str]:
    yield from (key if isinstance(key, str) else str(key[0]) for key in keys)
