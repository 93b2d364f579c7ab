"""Parameter groups: keys that the optimizer knows, no tensor twice, and the exemption from weight decay as meant."""

from __future__ import annotations

import difflib
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn
from torch.optim import Optimizer

from harness.watch.events_old import Forward, Step
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import held_by

OURS = {"params", "initial_lr", "param_names", "max_lr", "min_lr", "max_momentum", "base_momentum"}
"""Keys that torch itself adds."""

ALIASES = {"learning_rate": "lr", "wd": "weight_decay", "decay": "weight_decay", "l2": "weight_decay", "epsilon": "eps"}


class Groups(Invariant):
    checks = (
        Statement("groups::known-keys", "Each key of a parameter group is one that the optimizer reads."),
        Statement("groups::no-duplicates", "Each tensor is in one optimizer, once."),
        Statement(
            "groups::decay-exempt-as-meant",
            "Where some parameters are exempt from weight decay, biases and normalisation are.",
            severity="warning",
        ),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.models: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()

    def forward(self, event: Forward) -> None:
        self.models[event.model] = True

    def step_begins(self, event: Step) -> None:
        if event.number == 1:
            where = self.observer.optimizers[event.optimizer].made or event.where
            self._keys(event.optimizer, where)
            self._twice(event.optimizer, where)
            self._decay(event.optimizer, where)

    def _keys(self, optimizer: Optimizer, where: str | None) -> None:
        known = set(optimizer.defaults) | OURS
        for group in optimizer.param_groups:
            for key in group:
                meant = None if key in known else _meant(key, group[key], set(optimizer.defaults))
                if meant:
                    self.found(
                        "groups::known-keys",
                        expected=f"keys that {type(optimizer).__name__} reads: {', '.join(sorted(optimizer.defaults))}",
                        observed=f"{key!r}, which it does not; {meant!r} stays {group.get(meant)!r}",
                        hint=f"Write {meant!r}.",
                        where=where,
                        update=1,
                    )

    def _twice(self, optimizer: Optimizer, where: str | None) -> None:
        counts = Counter(id(p) for p in held_by(optimizer))
        twice = sum(count > 1 for count in counts.values())
        if twice:
            self.found(
                "groups::no-duplicates",
                expected="each tensor once",
                observed=f"{twice} tensors are in the optimizer more than once, and are updated as often",
                hint="Make the groups without an overlap.",
                where=where,
                update=1,
            )

    def _by_part(self, exempt: set[int]) -> bool:
        """Whether whole modules are exempt, such as a head, and not kinds of parameters."""
        whole = False
        for module in (each for model in self.models for each in model.modules()):
            own = {id(p) for p in module.parameters(recurse=False)}
            if own & exempt and own - exempt:
                return False
            whole = whole or bool(own & exempt and not _is_norm(module))
        return whole

    def _decay(self, optimizer: Optimizer, where: str | None) -> None:
        decays = {float(group.get("weight_decay") or 0.0) for group in optimizer.param_groups}
        exempt = {id(p) for g in optimizer.param_groups if not g.get("weight_decay") for p in g["params"]}
        if 0.0 not in decays or len(decays) < 2 or self._by_part(exempt):
            return  # nobody meant to exempt biases and normalisation
        decayed = {id(p) for group in optimizer.param_groups if group.get("weight_decay") for p in group["params"]}
        names = [
            f"{name}.{own}".lstrip(".")
            for model in self.models
            for name, module in model.named_modules()
            for own, p in module.named_parameters(recurse=False)
            if id(p) in decayed and (own == "bias" or _is_norm(module))
        ]
        if names:
            self.found(
                "groups::decay-exempt-as-meant",
                expected="biases and normalisation weights in the group without weight decay",
                observed=f"{names[0]}" + (f" and {len(names) - 1} more are decayed" if names[1:] else " is decayed"),
                hint="Choose them by their module (nn.LayerNorm) and by the name bias; in other architectures "
                "normalisation has other names. Right if you meant to decay them.",
                where=where,
                update=1,
            )


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower()


def _meant(key: str, value: Any, known: set[str]) -> str | None:
    """The key that somebody who wrote ``key`` meant; None for a key of their own."""
    if not isinstance(value, (int, float, tuple)) or isinstance(value, bool):
        return None
    if ALIASES.get(key) in known:
        return ALIASES[key]
    longer = [
        name for name in known if len(name) > 3 and (key.startswith(name) or name.startswith(key) > 0 < len(key) - 3)
    ]
    close = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.8)
    return next(iter(longer or close), None)
