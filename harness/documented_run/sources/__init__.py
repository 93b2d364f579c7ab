"""Where data and weights come from: the hub, a local folder, or the package itself."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.documented_run.recipe import BUILT_IN, MINILM, Recipe
from harness.errors import CannotTry
from harness.findings import first_line

if TYPE_CHECKING:
    from datasets import DatasetDict


def load_raw_datasets(recipe: Recipe) -> DatasetDict:
    """The recipe's corpus: splits train, validation and test with Hugging Face's features.

    Raises:
        CannotTry: the data is missing or broken; the message names the file, the line or column, and what was expected.
    """
    if recipe.data == BUILT_IN:
        from harness.documented_run.sources import builtin

        return builtin.raw_datasets(dataset=recipe.dataset)
    if recipe.data is None:
        from harness.documented_run.sources import hub

        return hub.raw_datasets(recipe)
    from harness.documented_run.sources import local

    return local.raw_datasets(recipe, Path(recipe.data))


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Tells a broken file from a broken library: nothing can run with the first, and the second is what we look for.

    Raises:
        CannotTry: an error that means a missing or damaged file; others (TypeError, ImportError, ...) pass through.
    """
    from safetensors import SafetensorError

    damaged = (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        json.JSONDecodeError,
        pickle.UnpicklingError,
        SafetensorError,
    )
    try:
        yield
    except Exception as error:
        if isinstance(error, damaged) or type(error) is Exception:  # tokenizers raises Exception itself
            raise CannotTry(f"{what} could not be loaded ({_reason(error)})") from error
        raise


def _reason(error: Exception) -> str:
    """Why, without the libraries' advice to let a checkpoint execute its own code."""
    if "trust_remote_code" in str(error):
        return (
            "it needs code that comes with the checkpoint, which is never executed; use a model from transformers "
            "itself"
        )
    if isinstance(error, pickle.UnpicklingError):
        return (
            "its pickle is damaged or contains more than tensors, so it is not executed; save the weights as "
            "safetensors"
        )
    return first_line(error)


def find_checkpoint(recipe: Recipe, *, weights: bool) -> str:
    """What ``from_pretrained`` is given for the recipe's checkpoint: a folder, or a name on the hub.

    ``weights`` asks for a checkpoint with weights; without it a tokenizer and a configuration are enough.

    Raises:
        CannotTry: the folder, its tokenizer or its weights are missing, or the hub is needed and out of reach.
    """
    if recipe.checkpoint == BUILT_IN:
        from harness.documented_run.sources import builtin

        return str(builtin.CHECKPOINT)
    if recipe.checkpoint == MINILM:
        from harness.documented_run.sources import minilm

        return str(minilm.checkpoint())
    if Path(recipe.checkpoint).is_dir():
        from harness.documented_run.sources import local

        return str(local.checkpoint(Path(recipe.checkpoint), weights=weights))
    if recipe.checkpoint.startswith((".", "/", "~")):
        raise CannotTry(
            f"checkpoint folder {recipe.checkpoint} not found; give a folder written by save_pretrained, or a name on "
            "the hub"
        )
    from harness.documented_run.sources import hub

    return hub.checkpoint(recipe.checkpoint)
