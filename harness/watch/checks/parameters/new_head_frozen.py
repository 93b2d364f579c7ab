from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, FromPretrained
from harness.watch.monitor import Monitor

SHOWN = 3
"""Names that are said."""

MOST_VALUES = 256
"""Values that tell whether a tensor was given others."""


@dataclass
class _Head:
    """What a checkpoint lacked of a model's head."""

    tensors: dict[str, torch.Tensor]
    """By their names in the model."""
    began: dict[str, torch.Tensor]
    """A few values of each."""
    where: str | None
    used: bool = False
    """Whether a model was trained by what this head says."""
    frozen: bool = True


class NewHeadFrozen(Check):
    """A model's head is new, since the checkpoint has none, and it is frozen: it stays random.

    ## Why is this a bug?
    `from_pretrained` makes what the checkpoint lacks at random and says so in a warning. A head has to be trained. One
    that is frozen with the rest, or that an adapter does not name, makes the rest learn around random numbers, and
    where an adapter is saved alone, the head is not saved with it: whoever loads it gets another one.

    ## What to do
    Leave `requires_grad` of the head as it is. With PEFT, name it in `modules_to_save`, or set `task_type`, which does.

    ## When it is right
    A head that your script gives weights of its own, or that is not used in the loss, is not reported. Random features
    on purpose are: ignore it there.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/troubleshooting#randomly-initialized-layers
    """

    id = "parameters::new-head-frozen"
    status = "new"
    explains = ("saved::loads-otherwise",)
    needs = "checkpoint that lacks the model's head"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.heads: list[_Head] = []
        self.within: WeakKeyDictionary[nn.Module, list[_Head]] = WeakKeyDictionary()
        """Those that a model has that is trained, be it within what an adapter put around it."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        tensors = dict(_lacking(event.model, event.info))
        if tensors:
            began = {name: _beginning(each) for name, each in tensors.items()}
            self.heads.append(_Head(tensors, began, event.where))

    def on_backward(self, event: Backward) -> None:
        if not self.heads:
            return
        for forward in event.forwards:
            if forward.number in event.reached and (forward.loss is not None or _scores(event, forward)):
                for head in self._heads_in(forward.model):
                    self.looked = head.used = True
                    head.frozen = head.frozen and not any(each.requires_grad for each in head.tensors.values())

    def _heads_in(self, model: nn.Module) -> list[_Head]:
        if model not in self.within:
            named = {id(each): name for name, each in model.named_parameters(remove_duplicate=False)}
            self.within[model] = [
                head
                for head in self.heads
                # PEFT keeps what it copies in order to train it, and what it adapts.
                if any(
                    id(each) in named and not {"original_module", "base_layer"} & set(named[id(each)].split("."))
                    for each in head.tensors.values()
                )
            ]
        return self.within[model]

    def on_end(self, event: End) -> None:
        for head in self.heads:
            same = all(torch.equal(_beginning(each), head.began[name]) for name, each in head.tensors.items())
            if head.used and head.frozen and same and self.monitor.stepped:
                self.found(
                    expected="a trained head, where the checkpoint has none",
                    observed=f"{', '.join(list(head.tensors)[:SHOWN])} are random and frozen: never trained",
                    where=head.where,
                    update=self.monitor.updates_made,
                )


def _lacking(model: Any, info: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters of a model's head that its checkpoint lacks, or has in another shape."""
    prefix = getattr(model, "base_model_prefix", "")
    if not isinstance(model, nn.Module) or not prefix or getattr(model, prefix, model) is model:
        return
    lacking = set(_names(info.get("missing_keys", ()))) | set(_names(info.get("mismatched_keys", ())))
    named = dict(model.named_parameters(remove_duplicate=False))
    loaded = {id(each) for name, each in named.items() if name not in lacking}
    for name, each in named.items():
        if name in lacking and not name.startswith(f"{prefix}.") and id(each) not in loaded:
            yield name, each


def _names(keys: Iterable[Any]) -> Iterator[str]:
    """Mismatched keys come with both shapes."""
    return (key if isinstance(key, str) else key[0] for key in keys)


def _beginning(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().flatten()[:MOST_VALUES].clone()


def _scores(event: Backward, forward: Forward) -> bool:
    """Whether a loss was computed of what the head says."""
    logits = forward.logits
    return logits is not None and any(loss.input.shape[-1:] == logits.shape[-1:] for loss in event.losses)
