from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from harness.torch_objects import is_distributed
from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, FromPretrained, Load, Save
from harness.watch.facts.new_weights import NewWeights, lacking
from harness.watch.facts.parameters import names
from harness.watch.facts.trained_models import reached
from harness.watch.monitor import Monitor


@dataclass(eq=False)
class _Loaded:
    """A model that was loaded when updates had been made, and has weights that were not."""

    model: ref[nn.Module]
    name: str
    """Of its class."""
    new: NewWeights
    used: bool = False
    """Whether it was called or saved with them."""


class LeftRandom(Check):
    """A model that was loaded for use has random weights: what was loaded lacks them, and nothing trained them.

    ## Why is this a bug?
    `ignore_mismatched_sizes=True` reinitialises a head whose number of labels is not the checkpoint's, and
    `load_state_dict(..., strict=False)` leaves what the state lacks as the constructor made it. Both say little. The
    model then predicts with random numbers in it.

    ## What to do
    Load it as it was saved: the same number of labels, the same options of its class, and `strict=True`.

    ## When it is right
    A model that is trained afterwards, that is loaded before any training, or whose weights the script sets itself. A
    model with random weights as a baseline is reported: ignore the finding there.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained
    """

    status = "new"
    needs = "model loaded after the training"
    explains = ("saved::loads-otherwise",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = WeakIdKeyDictionary()
        """The parameters that a checkpoint or a state gave their values."""
        self.new: list[_Loaded] = []
        self.trained: WeakSet[nn.Module] = WeakSet()

    def on_from_pretrained(self, event: FromPretrained) -> None:
        absent = lacking(event.model, event.info)
        self.given.update({each: None for name, each in event.model.named_parameters() if name not in absent})
        if self.monitor.stepped:
            self.looked = True
            self._is_new(event.model, absent, event.where)

    def on_load(self, event: Load) -> None:
        if not isinstance(event.into, nn.Module):
            return
        named = dict(event.into.named_parameters(remove_duplicate=False))
        self.given.update({each: None for name, each in named.items() if name in event.state})
        if self.monitor.stepped and event.state:
            self.looked = True
            absent = {name: each for name, each in named.items() if each not in self.given and _is_random(each)}
            if len(absent) < len(named) / 2:  # of a state that has nothing for it another check tells
                self._is_new(event.into, absent, event.where)

    def _is_new(self, model: nn.Module, absent: Mapping[str, torch.Tensor], where: str | None) -> None:
        self.new = [each for each in self.new if each.model() is not model]
        if absent and model not in self.trained:
            self.new.append(_Loaded(ref(model), type(model).__name__, NewWeights.of(absent, where)))

    def on_forward(self, event: Forward) -> None:
        if not event.gradients:
            self._is_used(event.model)

    def on_save(self, event: Save) -> None:
        if isinstance(event.what, nn.Module):
            self._is_used(event.what)

    def _is_used(self, by: nn.Module) -> None:
        for loaded in self.new:
            model = loaded.model()
            if not loaded.used and model is not None and any(module is model for module in by.modules()):
                loaded.used = loaded.new.are_as_made(dict(model.named_parameters(remove_duplicate=False)))

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            if model not in self.trained:
                self.trained.update(model.modules())
                self.new = [each for each in self.new if each.model() is None or each.model() not in self.trained]

    def on_end(self, event: End) -> None:
        for loaded in self.new:
            if loaded.used:
                self.found(
                    expected="weights that were trained, in the model that is used",
                    observed=f"{names(list(loaded.new.tensors))} of {loaded.name} are in nothing that was loaded into "
                    "it: they are random",
                    where=loaded.new.where,
                    update=self.monitor.updates_made,
                )


def _is_random(tensor: torch.Tensor) -> bool:
    """Whether it was drawn: constants, such as a norm's, are often left out and made again."""
    if tensor.dim() < 2 or tensor.is_meta or is_distributed(tensor):
        return False
    return bool((tensor != tensor.flatten()[0]).any())
