"""What the documents claim: Claim, the documents' sections, and the recipes that a claim is about.

The documents are Hugging Face's course, chapter 3, as five readers kept it: "Processing the data" and "Fine-tuning a
model with the Trainer API" (001), "A full training" (000 to 004). The claims stand beside their checks in
harness/stages. Here are only the two that baselines are compared with as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.recipe import RECIPES, Recipe

DOCUMENTED = Recipe()

ALL = ("000", "001", "002", "003", "004")

LOADING = "Processing the data: loading a dataset from the Hub"
PREPROCESSING = "Processing the data: preprocessing a dataset"
DYNAMIC_PADDING = "Processing the data: dynamic padding"
PREPARING = "A full training: prepare for training"
TRAINING_LOOP = "A full training: the training loop"
EVALUATION_LOOP = "A full training: the evaluation loop"
WITH_ACCELERATE = "A full training: supercharge your training loop with Accelerate"
TRAINER_API = "Fine-tuning a model with the Trainer API: training"
TRAINER_EVALUATION = "Fine-tuning a model with the Trainer API: evaluation"


@dataclass(frozen=True)
class Claim:
    """One sentence or printed output of a document.

    It is *exact* where every correct run shows it, and *ball park* where the document itself says that results vary.
    """

    id: str
    sentence: str
    documents: tuple[str, ...]
    section: str
    expected: Any = None
    """The documented value that the check compares with, where it compares with one."""
    kind: Literal["exact", "ball park"] = "exact"
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The recipe fields that the claim depends on, with the values for which it applies; for any other value it is
    reported as not applicable, never as passed."""

    def not_applicable(self, recipe: Recipe) -> str | None:
        """Why this claim says nothing about the recipe; None where it does."""
        for name, allowed in self.only.items():
            found = getattr(recipe, name)
            if found not in allowed:
                return f"about {name} {' or '.join(map(str, allowed))}; this recipe has {found}"
        return None


@dataclass(frozen=True)
class Invariant:
    """What must hold for a reason of our own."""

    id: str
    sentence: str


def as_documented(*names: str) -> dict[str, tuple[Any, ...]]:
    """For :attr:`Claim.only`: recipes that have the documented values of these fields."""
    return {name: (getattr(DOCUMENTED, name),) for name in names}


_MRPC, _BUILT_IN, _SST2 = DOCUMENTED.dataset, RECIPES["tiny"].dataset, RECIPES["sst2"].dataset

MRPC_ONLY = as_documented("dataset")
MRPC_SHAPE = {"dataset": (_MRPC, _BUILT_IN, _SST2)}
VOCABULARY = as_documented("vocabulary")
ONE_PROCESS = as_documented("processes")
BY_HAND = {"loop": ("plain", "accelerate")}
UNDER_ACCELERATE = {"loop": ("accelerate",)}
WITH_TRAINER = {"loop": ("trainer",)}


def by_corpus(mrpc: Any, sst2: Any) -> dict[str, Any]:
    """A value by corpus: the documents' own, the built-in one of its shape, and that of the exercise."""
    return {_MRPC: mrpc, _BUILT_IN: mrpc, _SST2: sst2}


MRPC_ROWS = {"train": 3668, "validation": 408, "test": 1725}

BALL_PARK = 0.06
"""How far from the documented figures is still their ball park: 2.5 standard deviations of five published MRPC seeds of
bert-base-uncased (transformers issue 346: accuracy 0.792 to 0.846, standard deviation 0.025)."""

_DOCUMENTED_RESULT = MRPC_ONLY | as_documented(
    "pretrained", "batch_size", "lr", "epochs", "schedule", "warmup_updates", "processes"
)

RESULT = Claim(
    "ball-park",
    "Fine-tuning bert-base-uncased on MRPC ends in the ball park of accuracy 0.8431 and F1 0.8908.",
    ALL,
    EVALUATION_LOOP,
    expected={"accuracy": 0.8431372549019608, "f1": 0.8907849829351535},
    kind="ball park",
    only=_DOCUMENTED_RESULT | BY_HAND,
)

TRAINER_RESULT = Claim(
    "trainer-ball-park",
    "Trainer ends in the ball park of accuracy 0.8578 and F1 0.8997.",
    ("001",),
    TRAINER_EVALUATION,
    expected={"accuracy": 0.8578431372549019, "f1": 0.8996539792387542},
    kind="ball park",
    only=_DOCUMENTED_RESULT | WITH_TRAINER,
)
