from __future__ import annotations

from collections import defaultdict
from typing import Any
from weakref import WeakSet

from torch import nn

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.adapters import adapted_layers, adapters_of
from harness.watch.monitor import Monitor

SHOWN = 6
"""Names that are said."""


class AdapterSkipsLayers(Check):
    """A pattern of an adapter's target modules matches some of a model's blocks and leaves out others like them.

    ## Why is this a bug?
    PEFT adapts what a pattern matches and is silent about the rest. `layers\\.[0-9]\\.` looks as if it matched every
    layer, but ends at the tenth. The blocks that are left out stay as the base has them: the adapter trains, and learns
    less than it could.

    ## What to do
    Name the modules without the numbers of their blocks (`target_modules=["q_proj", "v_proj"]`), or repair the pattern.
    Where only some blocks are meant, say so with `layers_to_transform`.

    ## When it is right
    Adapting a few blocks on purpose. The last ones alone, and those that `layers_to_transform` or `exclude_modules`
    names, are not reported.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/lora
    - https://huggingface.co/docs/peft/package_reference/lora#peft.LoraConfig
    """

    status = "new"
    needs = "adapter with a pattern of target modules"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.seen: WeakSet[nn.Module] = WeakSet()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for forward in event.forwards:
            if forward.gradients and forward.model not in self.seen:
                self.seen.add(forward.model)
                configs = adapters_of(forward.model).values()
                if configs and all(_is_pattern(each) for each in configs):
                    self.looked = True
                    self._look_at(forward.model, forward.where)

    def _look_at(self, model: nn.Module, where: str | None) -> None:
        adapted = adapted_layers(model)
        kinds = {_alike(name): type(each.get_base_layer()) for name, each in adapted.items() if _number(name)}
        blocks: dict[str, dict[tuple[int, ...], tuple[bool, str]]] = defaultdict(dict)
        for name, module in model.named_modules():
            pattern = _alike(name)
            if pattern in kinds and (name in adapted or type(module) is kinds[pattern]):
                blocks[pattern][_number(name)] = name in adapted, name
        skipped = []
        for alike in blocks.values():
            chosen = [is_adapted for is_adapted, _ in (alike[number] for number in sorted(alike))]
            if chosen != sorted(chosen):  # the last ones alone are a choice that is often made
                skipped += [name for is_adapted, name in alike.values() if not is_adapted]
        if skipped:
            shown = ", ".join(sorted(skipped, key=_number)[:SHOWN])
            self.found(
                expected="adapters in all blocks that are alike",
                observed=f"the pattern of target_modules leaves out {len(skipped)} modules that are like the "
                f"{len(adapted)} adapted ones but for the numbers in their names: {shown}",
                where=where,
                update=self.monitor.update,
            )


def _is_pattern(config: Any) -> bool:
    """Whether it says by the numbers of blocks which of them are adapted, and not by the names that all have."""
    targets = getattr(config, "target_modules", None)
    if getattr(config, "layers_to_transform", None) is not None or getattr(config, "exclude_modules", None):
        return False
    if isinstance(targets, str):
        return targets != "all-linear"
    return isinstance(targets, (set, list, tuple)) and any(_number(f"{each}.") for each in targets)


def _number(name: str) -> tuple[int, ...]:
    """The numbers of the blocks that a module is in; its own, at the end, is none: such modules are no blocks."""
    return tuple(int(each) for each in name.split(".")[:-1] if each.isdigit())


def _alike(name: str) -> str:
    """What the names of modules have in common that are in blocks alike."""
    *outer, own = name.split(".")
    return ".".join([*("#" if each.isdigit() else each for each in outer), own])
