from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.parameters.observations.new_tokens import NewTokens

MIN_PLACES = 8
"""Places with a new token that must have been seen. By reasoning: a few may be a text that quotes one."""


class NewTokensFrozen(Check):
    """The embeddings of added tokens are never trained.

    ## Why is this a bug?
    `resize_token_embeddings` gives new tokens random rows, or the mean of the others. Adapters freeze the embeddings
    and the head: unless you name them, the rows stay unchanged. The model then reads noise in place of the new tokens,
    and cannot learn to predict them.

    ## What to do
    Use `LoraConfig(modules_to_save=["embed_tokens", "lm_head"])`, or `trainable_token_indices=[…]` for the new tokens
    alone; in your own loop, give the embeddings to the optimizer.

    ## When it is right
    New rows that were trained before, or that only fill up the vocabulary: only tokens that occur in inputs or labels
    are counted.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/lora#efficiently-train-tokens-alongside-lora
    """

    new_since = "0.2.0"

    def judge(self, fact: NewTokens) -> Verdict:
        if fact.given < MIN_PLACES or fact.trained:
            return HELD
        return Found(
            expected="trainable embeddings for the new tokens",
            observed=f"the embeddings of the new tokens (from id {fact.before} on) are frozen and never trained; "
            f"{fact.taught / max(1, fact.places):.0%} of the targets are new tokens",
        )
