from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch import nn

from harness.watch.check import Check
from harness.watch.events import Backward, EmbeddingsResized, End, Forward, FromPretrained, Load
from harness.watch.facts.new_weights import NewWeights, lacking
from harness.watch.monitor import Monitor

SHOWN = 3
"""Names that are said."""


@dataclass(eq=False)
class _Head:
    """What a checkpoint lacked of a model's head, or what was put in place of it."""

    new: NewWeights
    used: bool = False
    """Whether a model was trained by what this head says."""
    frozen: bool = True
    as_made: bool = True
    """Whether it had the values that it was made with, when it was looked at last."""


class NewHeadFrozen(Check):
    """A model's head is new, since the checkpoint has none or it was replaced, and it is frozen: it stays random.

    ## Why is this a bug?
    `from_pretrained` initialises what the checkpoint lacks at random and says so in a warning. A head has to be
    trained. One that is frozen with the rest, or that an adapter does not name, makes the rest learn around random
    numbers, and if only the adapter is saved, the head is not saved with it: whoever loads it gets a different head.

    ## What to do
    Leave `requires_grad` of the head as it is. With PEFT, name it in `modules_to_save`, or set `task_type`, which does.

    ## When it is right
    A head whose weights your script sets itself, or that the loss does not use, is not reported. Random features on
    purpose are reported: ignore the warning there.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/troubleshooting#randomly-initialized-layers
    """

    status = "new"
    explains = ("saved::loads-otherwise",)
    needs = "checkpoint that lacks the model's head"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.heads: list[_Head] = []
        self.loaded: WeakKeyDictionary[nn.Module, dict[str, int]] = WeakKeyDictionary()
        """The identities of the parameters that modules had when they were loaded."""
        self.within: WeakKeyDictionary[nn.Module, list[_Head]] = WeakKeyDictionary()
        """Those that a model has that is trained, be it within what an adapter put around it."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        tensors = lacking(event.model, event.info)
        if tensors:
            self.heads.append(_Head(NewWeights.of(tensors, event.where)))
        self._is_loaded(event.model)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self._is_loaded(event.into)

    def on_embeddings_resized(self, event: EmbeddingsResized) -> None:
        """A head that was replaced by one with room for more tokens has the weights of the one before."""
        for module in list(self.loaded):
            self._is_loaded(module)

    def _is_loaded(self, module: nn.Module) -> None:
        self.loaded[module] = {name: id(each) for name, each in module.named_parameters(remove_duplicate=False)}

    def on_backward(self, event: Backward) -> None:
        if not self.loaded:
            return
        for forward in event.forwards:
            if forward.number in event.reached and (forward.loss is not None or _scores(event, forward)):
                for head in self._heads_in(forward.model, forward.where):
                    self.looked = head.used = True
                    head.frozen = head.frozen and not any(each.requires_grad for each in head.new.alive().values())
                    if head.frozen and self.monitor.is_sampled():
                        head.as_made = head.as_made and head.new.are_as_made(head.new.alive())

    def _heads_in(self, model: nn.Module, where: str | None) -> list[_Head]:
        if model not in self.within:
            self.heads += self._replaced(model, where)
            named = {id(each): name for name, each in model.named_parameters(remove_duplicate=False)}
            self.within[model] = [
                head
                for head in self.heads
                # PEFT keeps what it copies in order to train it, and what it adapts.
                if any(
                    id(each) in named and not {"original_module", "base_layer"} & set(named[id(each)].split("."))
                    for each in head.new.alive().values()
                )
            ]
        return self.within[model]

    def _replaced(self, model: nn.Module, where: str | None) -> Iterator[_Head]:
        """The last layer of a model, where another was put there after the model was loaded."""
        for module in model.modules():
            before = self.loaded.get(module)
            own = dict(module.named_parameters(remove_duplicate=False)) if before is not None else {}
            last = next(reversed(own), "").rpartition(".")[0]
            tensors = {name: each for name, each in own.items() if last and name.rpartition(".")[0] == last}
            if before and tensors and all(before.get(name, id(each)) != id(each) for name, each in tensors.items()):
                yield _Head(NewWeights.of(tensors, where))

    def on_end(self, event: End) -> None:
        for head in self.heads:
            if head.used and head.frozen and head.as_made and self.monitor.stepped:
                self.found(
                    expected="a trained head, where the checkpoint has none",
                    observed=f"{', '.join(list(head.new.tensors)[:SHOWN])} are random and frozen: never trained",
                    where=head.new.where,
                    update=self.monitor.updates_made,
                )


def _scores(event: Backward, forward: Forward) -> bool:
    """Whether a loss was computed of what the head says."""
    logits = forward.logits
    return logits is not None and any(loss.input.shape[-1:] == logits.shape[-1:] for loss in event.losses)
