"""What the documents claim: Claim, the documents' sections, and the recipes that a claim is about.

The documents are Hugging Face's course, chapter 3, as five readers kept it: "Processing the data" and "Fine-tuning a
model with the Trainer API" (001), "A full training" (000 to 004). The claims stand beside their checks in
harness/stages. Here are only the two that baselines are compared with as well.

Each claim cites: a few words of every document that it names, in that document's language, and the section in which
they are. ``harness claims --documents FOLDER`` looks them up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

PARTS: dict[str, dict[str, tuple[str, str]]] = {
    LOADING: {"001": ("##### 从Hub模型中心加载数据", "##### tokenizer的token_type_ids")},
    PREPROCESSING: {
        "000": ("### 数据预处理", "### 训练前的准备"),
        "001": ("##### tokenizer的token_type_ids", "##### 动态填充"),
        "002": ("Now we’ll see how to achieve the same results", "Prepare for training"),  # noqa: RUF001
        "003": ("from datasets import load_dataset", "## Prepare for training"),
        "004": ("from datasets import load_dataset", "# tokenized_datasets"),
    },
    DYNAMIC_PADDING: {"001": ("##### 动态填充", "##### 使用TrainerAPI")},
    TRAINER_API: {"001": ("##### 使用TrainerAPI", "##### 评估")},
    TRAINER_EVALUATION: {"001": ("##### 评估", "##### 完整训练")},
    PREPARING: {
        "000": ("### 训练前的准备", "### The training loop"),
        "001": ("#### 训练前准备", "import torch"),
        "002": ("Prepare for training", "The training loop"),
        "003": ("## Prepare for training", "## Training loop"),
        "004": ("## 1. Prepare for training", "## 2. Training loop"),
    },
    TRAINING_LOOP: {
        "000": ("### The training loop", "### Evaluation loop"),
        "001": ("#将训练转向gpu", "上述代码仍缺少一部分"),
        "002": ("The training loop", "The evaluation loop"),
        "003": ("## Training loop", "## Evaluation loop"),
        "004": ("## 2. Training loop", "## 3. Evaluation loop"),
    },
    EVALUATION_LOOP: {
        "000": ("### Evaluation loop", "### Accelerate"),
        "001": ("上述代码仍缺少一部分", "#上述过程总结"),
        "002": ("The evaluation loop", "Supercharge your training loop"),
        "003": ("## Evaluation loop", "## Supercharge your training loop"),
        "004": ("## 3. Evaluation loop", "🔔 __multiple GPUs__"),
    },
    WITH_ACCELERATE: {
        "000": ("### Accelerate", ""),
        "001": ("#上述过程总结", ""),
        "002": ("Supercharge your training loop", ""),
        "003": ("## Supercharge your training loop", ""),
        "004": ("🔔 __multiple GPUs__", ""),
    },
}
"""Where each reader kept a section of the course: how the line begins that begins it, and the first one after it (""
for the end of the document). The headings are the readers' own where they have them; 002 to 004 repeat the
preprocessing as a summary, and 001 divides "A full training" otherwise than the course."""


@dataclass(frozen=True)
class Citation:
    """Where a document says something: a few of its own words, "…" for what is left out between them."""

    document: str
    section: str
    words: str


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
    words: str | Mapping[str, str] = ""
    """A few words of the section that say it: code or printed output that all the documents share, or by document."""
    besides: tuple[Citation, ...] = ()
    """Where it is said in another section or document too."""
    derived: str = ""
    """What of it no document says, and what it follows from or whose it is."""

    @property
    def citations(self) -> Iterator[Citation]:
        """One for each document of the claim, then those in other places."""
        for document in self.documents:
            words = self.words if isinstance(self.words, str) else self.words.get(document, "")
            yield Citation(document, self.section, words)
        yield from self.besides

    def not_applicable(self, recipe: Recipe) -> str | None:
        """Why this claim says nothing about the recipe; None where it does."""
        for name, allowed in self.only.items():
            found = getattr(recipe, name)
            if found not in allowed:
                return f"about {name} {' or '.join(map(str, allowed))}; this recipe has {found}"
        return None


@dataclass(frozen=True)
class LookedUp:
    """A claim's citation, and the line of the document in which its words begin: from 1, None where they are not."""

    claim: str
    citation: Citation
    line: int | None


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

OF_SST2 = "SST-2's figures are GLUE's own: the documents set the exercise and show no result"

BALL_PARK = 0.06
"""How far from the documented figures is still their ball park: 2.5 standard deviations of five published MRPC seeds of
bert-base-uncased (transformers issue 346: accuracy 0.792 to 0.846, standard deviation 0.025)."""

_DOCUMENTED_RESULT = MRPC_ONLY | as_documented(
    "pretrained", "batch_size", "lr", "epochs", "schedule", "warmup_updates", "processes", "metrics"
)

RESULT = Claim(
    "ball-park",
    "Fine-tuning bert-base-uncased on MRPC ends in the ball park of accuracy 0.8431 and F1 0.8908.",
    ALL,
    EVALUATION_LOOP,
    expected={"accuracy": 0.8431372549019608, "f1": 0.8907849829351535},
    kind="ball park",
    only=_DOCUMENTED_RESULT | BY_HAND,
    words="{'accuracy': 0.8431372549019608, 'f1': 0.8907849829351535}",
    besides=(Citation("002", EVALUATION_LOOP, "they should be in the same ballpark"),),
    derived="how wide the ball park is",
)

TRAINER_RESULT = Claim(
    "trainer-ball-park",
    "Trainer ends in the ball park of accuracy 0.8578 and F1 0.8997.",
    ("001",),
    TRAINER_EVALUATION,
    expected={"accuracy": 0.8578431372549019, "f1": 0.8996539792387542},
    kind="ball park",
    only=_DOCUMENTED_RESULT | WITH_TRAINER,
    words="结果可能与此不同 … {'accuracy': 0.8578431372549019, 'f1': 0.8996539792387542}",
    derived="how wide the ball park is",
)
