from __future__ import annotations

import os
from weakref import WeakSet

from torch import nn

from harness.watch.check import Check
from harness.watch.events import Forward, Load, ModelMade
from harness.watch.facts.trained_models import pretrained_in
from harness.watch.monitor import Monitor


class FromScratch(Check):
    """A model has the configuration of a checkpoint, and new weights instead of the checkpoint's.

    ## Why is this a bug?
    `from_config` and the model's class make a model of the right size with random weights; only `from_pretrained` reads
    the weights. The training runs as usual, and its result is that of a model that has read nothing but this data set.

    ## What to do
    Use from_pretrained instead of from_config; right if you train from scratch.

    ## When it is right
    If you train from scratch with a known architecture, you can ignore this warning. A configuration that was made by
    hand and names no checkpoint is not reported, nor is a model into which the script loads a state.

    ## References
    - https://huggingface.co/docs/transformers/model_doc/auto#transformers.AutoModel.from_config
    """

    needs = "model of transformers"
    severity = "warning"
    formerly = ("weights::not-from-scratch",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loaded_any = False
        self.made: WeakSet[nn.Module] = WeakSet()
        self.looked_at: WeakSet[nn.Module] = WeakSet()

    def on_model_made(self, event: ModelMade) -> None:
        self.made.add(event.model)

    def on_load(self, event: Load) -> None:
        self.loaded_any = self.loaded_any or (isinstance(event.into, nn.Module) and bool(event.state))

    def on_forward(self, event: Forward) -> None:
        if event.model in self.looked_at:
            return
        self.looked_at.add(event.model)
        module = next(iter(pretrained_in(event.model)), None)
        self.looked |= module is not None
        if module is None or module not in self.made:
            return
        name = getattr(getattr(module, "config", None), "name_or_path", "")
        if name and event.gradients and self.monitor.update == 1 and not self.loaded_any:
            self.found(
                expected=f"the weights of {os.path.basename(str(name))}, whose configuration it has",
                observed=f"{type(module).__name__} was made from the configuration alone, with new weights",
                where=event.where,
                update=1,
            )
