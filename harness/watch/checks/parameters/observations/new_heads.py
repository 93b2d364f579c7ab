"""New heads: what a checkpoint lacked of a model's head, or what was put in its place, and whether it was trained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness.watch.events import (
    Backward,
    EmbeddingsResized,
    End,
    Fact,
    Forward,
    FromPretrained,
    Load,
    OptimizerMade,
)
from harness.watch.facts.new_weights import NewWeights, lacking
from harness.watch.recogniser import Recogniser


class NewHead(Fact):
    """A run is over that trained a model by what its new head says. ``where`` made the head, or called the model."""

    needs = "model with a head that is newer than the rest"
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
        """The identities of the parameters that modules had when they were loaded, or trained for the first time."""
        self._trained: WeakSet[nn.Module] = WeakSet()
        """Trained modules that were not loaded."""
        self._within: WeakKeyDictionary[nn.Module, list[_Head]] = WeakKeyDictionary()
        """New heads of each model that is trained, be it within what an adapter put around it."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        tensors = lacking(event.model, event.info)
        if tensors:
            self._heads.append(_Head(NewWeights.of(tensors, event.where)))
        self._is_loaded(event.model)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self._is_loaded(event.into)

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        """Another training: until then, a head may have been put in the place of the one before."""
        self._within.clear()

    def on_embeddings_resized(self, event: EmbeddingsResized) -> None:
        """A head that was replaced by one with room for more tokens has the weights of the one before."""
        for module in list(self._loaded):
            self._is_loaded(module)

    def _is_loaded(self, module: nn.Module) -> None:
        self._loaded[module] = {name: id(each) for name, each in module.named_parameters(remove_duplicate=False)}

    def on_backward(self, event: Backward) -> None:
        for forward in event.forwards:
            if forward.number not in event.reached:
                continue
            if forward.model not in self._loaded:
                self._is_loaded(forward.model)
                self._trained.add(forward.model)
            if self._heads_in(forward.model, forward.where) and (forward.loss is not None or _scores(event, forward)):
                for head in self._heads_in(forward.model, forward.where):
                    head.used = True
                    head.frozen = head.frozen and not any(each.requires_grad for each in head.new.alive().values())
                    if head.frozen and event.at.sampled:
                        head.as_made = head.as_made and head.new.are_as_made(head.new.alive())

    def _heads_in(self, model: nn.Module, where: str | None) -> list[_Head]:
        if model not in self._within:
            known = {id(each) for head in self._heads for each in head.new.alive().values()}
            for head in self._replaced(model, where):
                tensors = head.new.alive()
                made_here = model in self._trained
                if known.isdisjoint(id(each) for each in tensors.values()) and not (
                    made_here and not _as_torch_makes(tensors)
                ):
                    self._heads.append(head)
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


def _as_torch_makes(tensors: Mapping[str, torch.Tensor]) -> bool:
    """Whether a layer has the weights that torch draws for it: what another training left is beyond their bounds, and
    of 20 weights one is near them (0.8) in 99 of 100 layers."""
    weights = [each for each in tensors.values() if each.dim() > 1]
    return bool(weights) and all(
        0.8 < float(each.detach().abs().max()) * math.sqrt(each[0].numel()) <= 1.0 + 1e-6 for each in weights
    )


def _scores(event: Backward, forward: Forward) -> bool:
    """Whether a loss was computed of what the head says."""
    logits = forward.logits
    return logits is not None and any(loss.input.shape[-1:] == logits.shape[-1:] for loss in event.losses)
