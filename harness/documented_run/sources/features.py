"""The features that the loaded corpus has, whatever it was read from: Hugging Face's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.documented_run.recipe import Recipe

if TYPE_CHECKING:
    from datasets import Features


def raw_features(recipe: Recipe) -> Features:
    """Sentences as strings, the label as a ClassLabel, idx as an int32 (document 001, "loading a dataset")."""
    from datasets import ClassLabel, Features, Value

    return Features(
        {name: Value("string") for name in recipe.text_columns}
        | {recipe.label_column: ClassLabel(names=list(recipe.label_names)), "idx": Value("int32")}
    )
