"""Weights: what comes from the checkpoint is there, and a state that is loaded is loaded somewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import torch
from torch import nn

from harness.watch.events_old import Backward, Forward, Loaded
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import share_parameters

SHARE = 0.1
"""Of the backbone's tensors may be new, as a pooler is."""

HALF = 0.5


class Weights(Invariant):
    checks = (
        Statement(
            "weights::backbone-from-checkpoint", "The backbone has the checkpoint's weights; only a head is new."
        ),
        Statement(
            "weights::not-from-scratch",
            "A model that has a checkpoint's configuration has its weights too.",
            severity="warning",
        ),
        Statement("identity::state-was-loaded", "A state that is loaded changes what it is loaded into."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.loaded_any = False
        self.unused: list[tuple[ref[nn.Module], str, str | None, int]] = []
        """Modules that a state was loaded into and that have not been used since."""
        self.trained: WeakSet[nn.Module] = WeakSet()
        self.checkpoint: WeakKeyDictionary[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]] = WeakKeyDictionary()
        """Of each model from a checkpoint a few tensors of its backbone, as they were loaded."""
        self.new_models: WeakSet[nn.Module] = WeakSet()
        """Models that were made, and not from a checkpoint."""
        self.looked_at: WeakSet[nn.Module] = WeakSet()

    def constructed(self, model: nn.Module) -> None:
        self.new_models.add(model)

    def forward(self, event: Forward) -> None:
        self._used(event.model)
        if event.model in self.looked_at:
            return
        self.looked_at.add(event.model)
        pretrained = [module for module in event.model.modules() if hasattr(module, "base_model_prefix")]
        for module in pretrained:
            self._as_loaded(module, event)
        if pretrained and pretrained[0] in self.new_models:
            self._from_scratch(pretrained[0], event)

    def _as_loaded(self, module: nn.Module, event: Forward) -> None:
        loaded = self.checkpoint.get(module, [])
        changed = [p for p, value in loaded if not torch.equal(p, value.to(p.device, p.dtype))]
        if not self.observer.made and len(changed) > HALF * len(loaded):
            self.found(
                "weights::backbone-from-checkpoint",
                expected="the checkpoint's weights at the first update",
                observed=f"{len(changed)} of {len(loaded)} tensors looked at were changed after they were loaded",
                hint="Look for an initialisation that runs again, such as init_weights() or apply().",
                where=event.where,
                update=1,
            )

    def _from_scratch(self, module: nn.Module, event: Forward) -> None:
        name = getattr(getattr(module, "config", None), "name_or_path", "")
        if name and event.gradients and self.observer.update == 1 and not self.loaded_any:
            self.found(
                "weights::not-from-scratch",
                expected=f"the weights of {os.path.basename(str(name))}, whose configuration it has",
                observed=f"{type(module).__name__} was made from the configuration alone, with new weights",
                hint="Use from_pretrained instead of from_config; right if you train from scratch.",
                where=event.where,
                update=1,
            )

    def snapshot(self, model: nn.Module) -> None:
        self._used(model)

    def backward(self, event: Backward) -> None:
        for forward in event.forwards:
            if forward.number in event.reached:
                self.trained.add(forward.model)

    def _used(self, model: nn.Module) -> None:
        if self.unused:
            within = {id(module) for module in model.modules()}
            self.unused = [
                each for each in self.unused if (module := each[0]()) is None or not _shares(module, model, within)
            ]

    def ends(self, _: None) -> None:
        for module, name, where, update in self.unused if self.observer.complete else ():
            here = module()
            names = {type(model).__name__ for model in self.trained}
            if name in names and not (here is not None and any(_shares(here, m, set()) for m in self.trained)):
                self.found(
                    "identity::state-was-loaded",
                    expected="a state that is loaded into the model that goes on",
                    observed=f"it was loaded into another {name}, which nobody used afterwards",
                    hint="Load it into the model that is trained or evaluated, not into a copy of it.",
                    where=where,
                    update=update,
                )

    def from_checkpoint(self, event: tuple[Any, Mapping[str, Any], str | None]) -> None:
        model, info, where = event
        self.checkpoint[model] = [(p, p.detach().clone()) for p in spread_over(model)]
        prefix = getattr(model, "base_model_prefix", "")
        headed = bool(prefix) and hasattr(model, prefix)
        names = [name for name, _ in model.named_parameters()]
        backbone = [name for name in names if not headed or name.startswith(f"{prefix}.")]
        lacking = set(_names(info.get("missing_keys", ()))) | set(_names(info.get("mismatched_keys", ())))
        tied = set(getattr(model, "all_tied_weights_keys", None) or ())
        new = [name for name in backbone if name in lacking and name not in tied and "pooler" not in name]
        resized = set(_names(info.get("mismatched_keys", ()))) & set(backbone)
        if backbone and (len(new) > SHARE * len(backbone) or resized):
            new = new or sorted(resized)
            self.found(
                "weights::backbone-from-checkpoint",
                expected="a checkpoint that has the model's backbone",
                observed=f"{len(new)} of its {len(backbone)} tensors are newly initialised, such as {new[0]}; "
                f"{len(list(_names(info.get('unexpected_keys', ()))))} tensors of the checkpoint are not used",
                hint="Compare the names in the checkpoint with the model's: a prefix, or another class or version.",
                where=where,
            )

    def loads(self, event: Loaded) -> None:
        """Before it happens: a state that shares its memory with the model restores nothing."""
        if not isinstance(event.into, nn.Module) or self.observer.update == 1:
            return
        own = dict(event.into.named_parameters())
        shared = [
            name
            for name, value in event.state.items()
            if name in own and torch.is_tensor(value) and value.data_ptr() == own[name].data_ptr() and value.numel()
        ]
        if shared and len(shared) >= HALF * len(own):
            self.found(
                "identity::state-was-loaded",
                expected="a copy of the weights as they were",
                observed="the state shares its memory with the model: it went along with every update",
                hint="Keep copy.deepcopy(model.state_dict()), or save it to a file.",
                where=event.where,
                update=self.observer.updates_made,
            )

    def loaded(self, event: Loaded) -> None:
        if not isinstance(event.into, nn.Module) or not event.state:
            return
        self.loaded_any = True
        self.checkpoint.clear()
        name = type(event.into).__name__
        self.unused.append((ref(event.into), name, event.where, max(1, self.observer.updates_made)))
        if event.strict:
            return
        fitting = len(event.state) - len(event.unexpected)
        if fitting >= HALF * len(event.state):
            return
        self.found(
            "identity::state-was-loaded",
            expected="a state whose names are the module's",
            observed=f"{fitting} of its {len(event.state)} tensors have a place in {type(event.into).__name__}; "
            "strict=False lets the others go",
            hint="Compare the names (a prefix such as module. or model.), and load with strict=True.",
            where=event.where,
        )


def _names(keys: Iterable[Any]) -> Iterable[str]:
    yield from (key if isinstance(key, str) else str(key[0]) for key in keys)


def _shares(module: nn.Module, model: nn.Module, within: set[int]) -> bool:
    """Whether ``module`` is a part of ``model``, or has parameters of it."""
    return id(module) in within or share_parameters(module, model)


def spread_over(model: nn.Module) -> list[nn.Parameter]:
    """A few matrices from all over a model's backbone."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    return matrices[:1] + matrices[len(matrices) // 3 :: max(1, len(matrices) // 3)][:2]
