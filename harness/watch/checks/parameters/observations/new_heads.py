"""New heads: what a checkpoint lacked of a model's head, and whether it was trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch import nn

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, EmbeddingsResized, End, Fact, Forward, FromPretrained, Load
from harness.watch.facts.new_weights import NewWeights, lacking


class NewHead(Fact):
    """A run is over that trained a model by what its new head says. ``where`` made the head, or called the model."""

    needs = "checkpoint that lacks the model's head"
    tensors: Sequence[str]
    """The names of the head's."""
    stays_random: bool
    """Whether it was frozen in all backward passes, and has the values that it was made with."""


@dataclass(eq=False)
class _Head:
    """What a checkpoint lacked of a model's head, or what was put in place of it."""

    new: NewWeights
    used: bool = False
    """Whether a model was trained by what this head says."""
    frozen: bool = True
    as_made: bool = True
    """Whether it had the values that it was made with, when it was looked at last."""


class NewHeads(Recogniser):
    makes = (NewHead,)

    def begin(self) -> None:
        self._heads: list[_Head] = []
        self._loaded: WeakKeyDictionary[nn.Module, dict[str, int]] = WeakKeyDictionary()
        """The identities of the parameters that modules had when they were loaded."""
        self._within: WeakKeyDictionary[nn.Module, list[_Head]] = WeakKeyDictionary()
        """Those that a model has that is trained, be it within what an adapter put around it."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        tensors = lacking(event.model, event.info)
        if tensors:
            self._heads.append(_Head(NewWeights.of(tensors, event.where)))
        self._is_loaded(event.model)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self._is_loaded(event.into)

    def on_embeddings_resized(self, event: EmbeddingsResized) -> None:
        """A head that was replaced by one with room for more tokens has the weights of the one before."""
        for module in list(self._loaded):
            self._is_loaded(module)

    def _is_loaded(self, module: nn.Module) -> None:
        self._loaded[module] = {name: id(each) for name, each in module.named_parameters(remove_duplicate=False)}

    def on_backward(self, event: Backward) -> None:
        if not self._loaded:
            return
        for forward in event.forwards:
            if forward.number in event.reached and (forward.loss is not None or _scores(event, forward)):
                for head in self._heads_in(forward.model, forward.where):
                    head.used = True
                    head.frozen = head.frozen and not any(each.requires_grad for each in head.new.alive().values())
                    if head.frozen and event.at.sampled:
                        head.as_made = head.as_made and head.new.are_as_made(head.new.alive())

    def _heads_in(self, model: nn.Module, where: str | None) -> list[_Head]:
        if model not in self._within:
            self._heads += self._replaced(model, where)
            named = {id(each): name for name, each in model.named_parameters(remove_duplicate=False)}
            self._within[model] = [
                head
                for head in self._heads
                # PEFT keeps what it copies in order to train it, and what it adapts.
                if any(
                    id(each) in named and not {"original_module", "base_layer"} & set(named[id(each)].split("."))
                    for each in head.new.alive().values()
                )
            ]
        return self._within[model]

    def _replaced(self, model: nn.Module, where: str | None) -> Iterator[_Head]:
        """The last layer of a model, where another was put there after the model was loaded."""
        for module in model.modules():
            before = self._loaded.get(module)
            own = dict(module.named_parameters(remove_duplicate=False)) if before is not None else {}
            last = next(reversed(own), "").rpartition(".")[0]
            tensors = {name: each for name, each in own.items() if last and name.rpartition(".")[0] == last}
            if before and tensors and all(before.get(name, id(each)) != id(each) for name, each in tensors.items()):
                yield _Head(NewWeights.of(tensors, where))

    def on_end(self, event: End) -> None:
        for head in self._heads:
            if head.used:
                random = head.frozen and head.as_made and self.monitor.stepped
                self.tell(NewHead(tensors=list(head.new.tensors), stays_random=random, where=head.new.where))


def _scores(event: Backward, forward: Forward) -> bool:
    """Whether a loss was computed of what the head says."""
    logits = forward.logits
    return logits is not None and any(loss.input.shape[-1:] == logits.shape[-1:] for loss in event.losses)
