from __future__ import annotations

from typing import Any
from weakref import WeakSet

from torch import nn

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.monitor import Monitor

SHOWN = 8
"""Names that are said."""

ADDED = {"SEQ_CLS": ("classifier", "score"), "TOKEN_CLS": ("classifier", "score"), "QUESTION_ANS": ("qa_outputs",)}
"""Names that PEFT itself puts into `modules_to_save`, of which a model has one, by the task of an adapter."""


class AdapterTargetsAbsent(Check):
    """Names of an adapter's target modules, or of those to train whole, match no module: those layers stay as they are.

    ## Why is this a bug?
    PEFT adapts what it finds and is silent about the rest, as long as one name matches. A list made for another
    architecture (`q_proj`, `k_proj`, `v_proj` on a model with a fused `qkv_proj`) then adapts a few layers and leaves
    out the attention: the adapter trains, and learns less than it could. A name in `modules_to_save` that the model
    does not have (`classifier` when the head is called `score`) leaves a new head random.

    ## What to do
    Print `model.named_modules()` and name the layers that are there, or use `target_modules="all-linear"`.

    ## When it is right
    One list for several architectures, on purpose. Patterns (a string) and `all-linear` are not looked at.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/lora
    """

    status = "new"
    needs = "adapter with a list of modules"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.seen: WeakSet[nn.Module] = WeakSet()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for forward in event.forwards:
            if forward.gradients and forward.model not in self.seen:
                self.seen.add(forward.model)
                self._look_at(forward.model, forward.where)

    def _look_at(self, model: nn.Module, where: str | None) -> None:
        configs = getattr(model, "peft_config", None)
        if not isinstance(configs, dict):
            return
        names = {_own_name(name) for name, _ in model.named_modules()}
        for adapter, config in configs.items():
            for option, added in (("target_modules", ()), ("modules_to_save", ADDED.get(_task(config), ()))):
                targets = getattr(config, option, None)
                if not isinstance(targets, (set, list, tuple)) or not targets:
                    continue
                self.looked = True
                absent = sorted({each for each in targets if not any(_is(name, each) for name in names)} - {*added})
                if absent:
                    there = sorted({target for target in targets if target not in absent})
                    self.found(
                        expected=f"modules for each of the names in {option}",
                        observed=f"{len(absent)} of {len(targets)} {option} of the adapter {adapter!r} match no "
                        f"module: {', '.join(absent[:SHOWN])}; matched: {', '.join(there[:SHOWN]) or 'none'}",
                        where=where,
                        update=self.monitor.update,
                    )


def _task(config: Any) -> str:
    """What the adapter is for, as PEFT calls it; empty where that is not said."""
    task = getattr(config, "task_type", None)
    return str(getattr(task, "value", task) or "")


def _own_name(name: str) -> str:
    """A module's name as it was before an adapter was put around it."""
    return name.removesuffix(".base_layer")


def _is(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")
