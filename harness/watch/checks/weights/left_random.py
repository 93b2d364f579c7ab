from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakSet

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, FromPretrained, Load, Save
from harness.watch.facts.new_weights import NewWeights, lacking
from harness.watch.facts.trained_models import reached
from harness.watch.monitor import Monitor

SHOWN = 3
"""Names that are said."""


class LeftRandom(Check):
    """A model that was loaded for use has random weights: what was loaded lacks them, and nothing trained them.

    ## Why is this a bug?
    `ignore_mismatched_sizes=True` makes a head anew whose number of labels is not the checkpoint's, and
    `load_state_dict(..., strict=False)` leaves what the state lacks as the constructor made it. Both say little. The
    model then predicts with random numbers in it.

    ## What to do
    Load it as it was saved: the same number of labels, the same options of its class, and `strict=True`.

    ## When it is right
    A model that is trained afterwards, that is loaded before any training, or that the script gives these weights
    itself. A model with random weights as a baseline is reported: ignore it there.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained
    """

    id = "weights::left-random"
    status = "new"
    needs = "model loaded after the training"
    explains = ("saved::loads-otherwise",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = WeakIdKeyDictionary()
        """The parameters that a checkpoint or a state gave their values."""
        self.new: list[tuple[nn.Module, NewWeights]] = []
        self.used: WeakSet[nn.Module] = WeakSet()
        """Modules that were called or saved since, without gradients."""
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
        self.new = [(each, new) for each, new in self.new if each is not model]
        if absent and model not in self.trained:
            self.new.append((model, NewWeights.of(absent, where)))

    def on_forward(self, event: Forward) -> None:
        if self.new and not event.gradients:
            self.used.update(event.model.modules())

    def on_save(self, event: Save) -> None:
        if self.new and isinstance(event.what, nn.Module):
            self.used.update(event.what.modules())

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            if model not in self.trained:
                self.trained.update(model.modules())

    def on_end(self, event: End) -> None:
        for model, new in self.new:
            if model in self.used and model not in self.trained and new.are_as_made:
                self.found(
                    expected="weights that were trained, in the model that is used",
                    observed=f"{', '.join(list(new.tensors)[:SHOWN])} of {type(model).__name__} are in nothing that "
                    "was loaded into it: they are random",
                    where=new.where,
                    update=self.monitor.updates_made,
                )


def _is_random(tensor: torch.Tensor) -> bool:
    """Whether it was drawn: constants, such as a norm's, are often left out and made again."""
    return tensor.dim() > 1 and not tensor.is_meta and bool((tensor != tensor.flatten()[0]).any())
