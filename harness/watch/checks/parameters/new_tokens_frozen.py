from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import ref

from torch import nn

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, EmbeddingsResized, End
from harness.watch.facts.labels_given import LabelsGiven
from harness.watch.monitor import Monitor

MIN_PLACES = 8
"""Places with a new token that must have been seen. By reasoning: a few may be a text that quotes one."""


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


class NewTokensFrozen(Check):
    """Tokens were added, and their embeddings are never trained.

    ## Why is this a bug?
    `resize_token_embeddings` gives new tokens random rows, or the mean of the others. Adapters freeze the embeddings
    and the head: unless they are named, the rows stay as they are, and the model reads noise in place of the new tokens
    and cannot learn to predict them.

    ## What to do
    `LoraConfig(modules_to_save=["embed_tokens", "lm_head"])`, or `trainable_token_indices=[…]` for the new rows alone;
    in a loop of your own, give the embeddings to the optimizer.

    ## When it is right
    New rows that were trained before, or that only fill up the vocabulary: only tokens that occur in inputs or labels
    are counted.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/lora#efficiently-train-tokens-alongside-lora
    """

    status = "new"
    needs = "embeddings that were resized for new tokens"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = monitor.fact(LabelsGiven)
        self.grown: list[_Grown] = []

    def on_embeddings_resized(self, event: EmbeddingsResized) -> None:
        if event.after > event.before:
            self.grown.append(_Grown(ref(event.embedding), event.before, event.where))

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for each in self.given.labelled if self.grown else ():
            for grown in self.grown:
                if (name := _name_in(each.forward.model, grown.embedding())) is None:
                    continue
                self.looked = True
                grown.given += int((each.tokens >= grown.before).sum())
                grown.taught += int((each.counted & (each.labels >= grown.before)).sum())
                grown.places += int(each.counted.sum())
                grown.trained = grown.trained or _is_trained(each.forward.model, name)

    def on_end(self, event: End) -> None:
        for grown in self.grown:
            if grown.given >= MIN_PLACES and not grown.trained:
                share = grown.taught / max(1, grown.places)
                self.found(
                    expected="trainable embeddings for the new tokens",
                    observed=f"the rows of the new tokens (from {grown.before} on) are frozen in the embeddings and "
                    f"never trained; {share:.0%} of the targets are new tokens",
                    where=grown.where,
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
