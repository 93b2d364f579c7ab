"""Losses: which models return one when labels are given, and what makes two trainings' losses differ."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForSequenceClassification, set_seed

from harness.documented_run.stages.chain import Run
from harness.documented_run.stages.measures.results import Returns
from harness.documented_run.stages.model import head_and_backbone
from harness.documented_run.stages.replays.replays import replayed
from harness.documented_run.stages.replays.twins import fixed_order, planned, reseed_before_each_forward, twin
from harness.torch_objects import unchanged_random_state

_ENCODER = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}

ARCHITECTURES: Mapping[str, Mapping[str, Any]] = {
    "bert": _ENCODER,
    "roberta": _ENCODER,
    "albert": _ENCODER | {"embedding_size": 8},
    "distilbert": {"dim": 8, "n_layers": 1, "n_heads": 1, "hidden_dim": 8},
    "gpt2": {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 16, "pad_token_id": 0},
    "t5": {"d_model": 8, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1, "decoder_start_token_id": 0},
}
"""Small models of encoders, of a decoder and of both."""

WITH_LOSS = ("SequenceClassification", "TokenClassification", "MaskedLM", "CausalLM", "Seq2SeqLM")
"""Tasks whose models take labels."""

WITHOUT_LOSS = ("QuestionAnswering", "")
"""Tasks whose models do not: those of questions take positions; the last one is a model without a head."""

FACTORS = ("head", "order", "dropout")
"""What is drawn at random in a training, each from a seed of its own."""


def returned() -> dict[tuple[str, str], Returns]:
    """What the models of each architecture and task return, given labels."""
    found: dict[tuple[str, str], Returns] = {}
    with unchanged_random_state():
        for architecture, sizes in ARCHITECTURES.items():
            config = AutoConfig.for_model(architecture, vocab_size=16, **sizes)
            for task in (*WITH_LOSS, *WITHOUT_LOSS):
                kind = getattr(transformers, f"AutoModelFor{task}" if task else "AutoModel")
                if type(config) in kind._model_mapping:
                    found[architecture, task] = _returned(kind.from_config(config).eval(), task)
    return found


def _returned(model: Any, task: str) -> Returns:
    ids = torch.tensor([[3, 5, 7, 1], [4, 6, 8, 1]])  # 1 ends a text, which T5 asks for
    of_tokens = {"TokenClassification": ids % 2, "MaskedLM": ids, "CausalLM": ids, "Seq2SeqLM": ids}
    try:
        with torch.no_grad():
            outputs = model(input_ids=ids, labels=of_tokens.get(task, torch.tensor([0, 1])))
    except (TypeError, ValueError):
        return "an error"
    loss = getattr(outputs, "loss", None)
    return "nothing" if loss is None else "a loss" if loss.dim() == 0 and loss.isfinite() else "no finite number"


def varied(run: Run) -> dict[str, float]:
    """How far a short training's losses are from another's that differs in one factor's seed: the mean over updates.

    "nothing" is the same training once more.
    """
    updates = planned(run)
    with unchanged_random_state():
        losses = {name: _losses(run, updates, name) for name in ("", "nothing", *FACTORS)}
    first = losses.pop("")
    return {
        name: fmean(abs(one - other) for one, other in zip(first, others, strict=True))
        for name, others in losses.items()
    }


def _losses(run: Run, updates: int, factor: str) -> list[float]:
    return replayed(twin_of_seeds(run, updates, {name: run.recipe.seed + (name == factor) for name in FACTORS})).losses


def twin_of_seeds(run: Run, updates: int, seeds: Mapping[str, int]) -> Run:
    """A training from the checkpoint, by the plain loop, with a seed for each factor; all epochs have one order."""
    other = twin(run, updates, lambda model: None, loop="plain")
    new_head(other, run.checkpoint, seeds["head"])
    recipe, other.recipe = other.recipe, other.recipe.with_(seed=seeds["order"])
    other.train_dl = fixed_order(other)
    other.recipe = recipe
    reseed_before_each_forward(other.model, seeds["dropout"])
    return other


def new_head(run: Run, checkpoint: str, seed: int) -> None:
    """Give the run's model the head that from_pretrained draws from a seed."""
    set_seed(seed)
    drawn = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=run.recipe.num_labels)
    head, _ = head_and_backbone(run)
    with torch.no_grad():
        for name, tensor in head.items():
            tensor.copy_(drawn.state_dict()[name])
