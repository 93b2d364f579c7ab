"""New tokens: embeddings that got rows for them, and whether these were trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import ref

from torch import nn

from harness.watch.events import EmbeddingsResized, End, Fact
from harness.watch.facts.labels_given import Labelled
from harness.watch.recogniser import Recogniser


class NewTokens(Fact):
    """A run is over that taught a language model whose embeddings had got new rows. ``where`` gave them."""

    needs = "embeddings that were resized for new tokens"
    of_run = True
    before: int
    """Rows of the embeddings before."""
    given: int = 0
    """Places of the model's inputs with a new token."""
    taught: int = 0
    """Places of the model's targets with a new token."""
    places: int = 0
    """All places with a target."""
    trained: bool = False
    """Whether the embeddings, or an adapter of theirs, can be trained."""


@dataclass
class _Grown:
    """Embeddings that got new rows."""

    embedding: ref[Any]
    before: int
    where: str | None
    given: int = 0
    taught: int = 0
    places: int = 0
    trained: bool = False
    met: bool = False
    """Whether a model with them was given labels."""


class EmbeddingsGrown(Recogniser):
    makes = (NewTokens,)

    def begin(self) -> None:
        self._grown: list[_Grown] = []

    def on_embeddings_resized(self, event: EmbeddingsResized) -> None:
        if event.after > event.before:
            self._grown.append(_Grown(ref(event.embedding), event.before, event.where))

    def on_labelled(self, fact: Labelled) -> None:
        for grown in self._grown:
            if (name := _name_in(fact.forward.model, grown.embedding())) is None:
                continue
            grown.met = True
            grown.given += int((fact.tokens >= grown.before).sum())
            grown.taught += int((fact.counted & (fact.labels >= grown.before)).sum())
            grown.places += int(fact.counted.sum())
            grown.trained = grown.trained or _is_trained(fact.forward.model, name)

    def on_end(self, event: End) -> None:
        for grown in self._grown:
            if grown.met:
                self.tell(
                    NewTokens(
                        before=grown.before,
                        given=grown.given,
                        taught=grown.taught,
                        places=grown.places,
                        trained=grown.trained,
                        where=grown.where,
                    )
                )


def _name_in(model: nn.Module, embedding: Any) -> str | None:
    """Under which name a model has this embedding, be it within what an adapter put around it."""
    return next((name for name, module in model.named_modules() if module is embedding), None)


def _is_trained(model: nn.Module, name: str) -> bool:
    """Whether what is called so has a trainable tensor with a row for each token or for some: an adapter of tokens,
    say."""
    for wrapper in ("original_module", "base_layer"):
        name = name.removesuffix(f".{wrapper}")
    return any(each.requires_grad for each in model.get_submodule(name).parameters())
