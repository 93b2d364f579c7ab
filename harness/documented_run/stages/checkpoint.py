"""The recipe's checkpoint, as several stages read it: tokenizer, configuration and tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from harness.documented_run.recipe import Recipe
from harness.documented_run.sources import find_checkpoint, loading
from harness.findings import NotApplicable


def load_tokenizer(recipe: Recipe) -> PreTrainedTokenizerBase:
    """The tokenizer of the recipe's checkpoint, as it is there."""
    checkpoint = find_checkpoint(recipe, weights=False)
    with loading(f"the tokenizer of {checkpoint}"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(checkpoint, trust_remote_code=False)
    return tokenizer


def model_config(recipe: Recipe) -> Any:
    """The configuration of the recipe's checkpoint; the tokenizer's own word may be the bug."""
    checkpoint = find_checkpoint(recipe, weights=False)
    with loading(f"the configuration of {checkpoint}"):
        return AutoConfig.from_pretrained(checkpoint, trust_remote_code=False)


def two_segments_only(recipe: Recipe) -> None:
    """For checks of token_type_ids.

    Raises:
        NotApplicable: the model has one segment (RoBERTa) or none (DistilBERT).
    """
    config = model_config(recipe)
    if getattr(config, "type_vocab_size", 0) < 2:
        raise NotApplicable(f"{type(config).__name__} knows no second segment")


def checkpoint_tensors(checkpoint: str) -> dict[str, torch.Tensor]:
    """The tensors in the checkpoint's files, read without the model's code, by name without the backbone's prefix."""
    from huggingface_hub import snapshot_download
    from safetensors.torch import load_file

    folder = Path(checkpoint)
    if not folder.is_dir():
        folder = Path(snapshot_download(checkpoint, allow_patterns=["model*.safetensors"]))
        if not any(folder.glob("model*.safetensors")):
            folder = Path(snapshot_download(checkpoint, allow_patterns=["pytorch_model*.bin"]))
    tensors: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        tensors |= load_file(path)
    if not tensors:
        for path in sorted(folder.glob("pytorch_model*.bin")):
            tensors |= torch.load(path, map_location="cpu", weights_only=True)
    # Checkpoints from TensorFlow call LayerNorm's weight and bias gamma and beta.
    renamed = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    for old, new in renamed.items():
        tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    return tensors
