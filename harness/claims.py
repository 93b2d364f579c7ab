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
class WithoutClaim:
    """Why no claim is for a passage of the documents."""

    why: str
    words: tuple[str, ...]
    """Of each passage: some of its words, "…" for what is left out."""
    documents: tuple[str, ...] = ALL
    kind: Literal["sentence", "code", "comment", "output"] | None = None
    """What the passages are; None for any."""


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

_NOT_RUN_YET = "no run with the weights of bert-base-uncased is recorded yet (docs/baselines.md)"

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
    derived=f"how wide the ball park is; {_NOT_RUN_YET}",
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
    besides=(
        Citation("001", TRAINER_EVALUATION, "metric.compute(predictions=preds, references=predictions.label_ids)"),
    ),
    derived=f"how wide the ball park is; {_NOT_RUN_YET}",
)

TRANSLATED = {"002": "the translation of what stands above it"}
"""Documents in which each paragraph is followed by its translation into Chinese."""

WITHOUT_CLAIM = (
    WithoutClaim(
        "an import: `harness documents` runs it, and the matrix says on which versions it fails",
        ("import …", "from … import …"),
        kind="code",
    ),
    WithoutClaim(
        "the step itself: the check STAGE::completes stands for it",
        (
            'raw_datasets = load_dataset("glue", "mrpc")',
            'checkpoint = "bert-base-uncased"',
            "tokenizer = AutoTokenizer.from_pretrained(checkpoint)",
            "def tokenize_function(example):",
            "trainer.train()",
        ),
        kind="code",
    ),
    WithoutClaim(
        "the step itself: the check columns::completes stands for it",
        ("Our tokenized_datasets has one method for each …",),
        ("002",),
    ),
    WithoutClaim(
        "shows what is printed below it",
        ("raw_datasets", "tokenized_datasets", "inputs"),
        kind="code",
    ),
    WithoutClaim(
        "a heading",
        (
            "Full Training",
            "Full training",
            "A full training",
            "一个完整的训练流程",
            "数据预处理",
            "训练前的准备",
            "训练前准备",
            "dataloader",
            "model",
            "an optimizer",
            "a learning rate scheduler",
            "Prepare for training",
            "The training loop",
            "Training loop",
            "The evaluation loop",
            "Evaluation loop",
            "Accelerate",
            "Supercharge your training loop with …",
            "Last notes:",
            "从Hub模型中心加载数据",
            "tokenizer的token_type_ids",
            "动态填充",
            "使用TrainerAPI微调模型",
            "评估",
            "完整训练…基于Pytorch…",
            "开始训练循环",
            "关于其accelerate的设置",
            "🔔 __multiple GPUs__",
            "3-Fine-tuning_a_pretrained_model-3-…",
            "Hugging face: A full training …",
        ),
        kind="sentence",
    ),
    WithoutClaim(
        "says what comes next, or what the code beside it is",
        (
            "Again, we assume …",
            "Here is a short summary …",
            "Before actually writing …",
            "The first ones are the dataloaders …",
            "Specifically, we need to:",
            "Now that this is done, we can easily define …",
            "Now that we’re completely finished …",  # noqa: RUF001
            "We’re almost ready …",  # noqa: RUF001
            "We’re just missing two things: …",  # noqa: RUF001
            "We are now ready to train!",
            "We need to add an evaluation loop …",
            "Here’s how to implement …",  # noqa: RUF001
            "Starting from the creation …",
            "And here are the changes:",
            "The first line to add is the import line.",
            "If you’d like to copy and paste …",  # noqa: RUF001
            "To try it out in your distributed setup, …",
        ),
        ("002", "003", "004"),
    ),
    WithoutClaim(
        "says what comes next, or what the code beside it is",
        (
            "原始代码",
            "并行加速的代码",
            "详细含义如下…",
            "接下来进行该新函数的填充效果",
            "下例是以上所学对数据预处理的全部代码…",
            "下例为MRPC中的glue数据集…",
            "以下是定义Trainer类的工作…",
            "接下来是Trainer.predict()的过程…",
            "现在可以将preds与标签进行比对。",
            "将所有打包…",
            "将其加入Trainer类…",
            "至此…",
            "但仍缺少优化器和学习率调度器",
            "上述代码仍缺少一部分…",
            "利用Accelerate完整代码",
            "训练集",
            "验证集",
            "测试集",
            "进行微调",
            "进行模型实例化",
            "测试…传入batch",
            "删减",
        ),
        ("000", "001"),
    ),
    WithoutClaim(
        "says what comes next, or what the code beside it is",
        (
            "A continuaci…",
            "Se asume que …",
            "Debemos definir un par de objetos …",
            "Espec…ficamente:",
            "Definir dataloaders:",
            "Ahora en lo referente al modelo:",
            "Finalmente, para el bucle … solo nos faltan …",
            "El … que hemos hecho hasta este punto …",
            "`Y estos son los cambios …",
            "Este ser… a secas con accelerate:",
        ),
        ("003",),
    ),
    WithoutClaim(
        "says what comes next, or what the code beside it is",
        (
            "이번 포스트에서는 …",
            "가장 먼저 datasets 라이브러리로 …",
            "모델을 정의해서 …",
            "이제 optimizer, lr_scheduler만 …",
            "코드에 대한 설명은 …",
            "tokenized_datasets 수정",
        ),
        ("004",),
    ),
    WithoutClaim(
        "of the page, not of the training: its author, links, buttons and layout",
        (
            "title:…",
            "A full training (customizing training)…",
            "teaser: …",
            "categories:",
            "nlp_huggingface…",
            "NLP …",
            "Huggingface에 관한 포스트는 …",
            "<details>",
            "</details>",
            "<div …",
            "</div>",
            "<summary>…",
            "中英文对照学习…",
            "原课程链接…",
            "Ask a Question",
            "Open In …",
            "[Anterior]…",
            "You can find more examples in …",
        ),
        ("002", "003", "004"),
    ),
    WithoutClaim(
        "where transformers has AdamW is a fact of the matrix, `package of AdamW`",
        ("🤗`Transformers`라이브러리에서 …",),
        ("004",),
    ),
    WithoutClaim(
        "advice on hardware: it needs no GPU, since every run with --loop trainer can train on a CPU",
        ("Transformers提供了一个Trainer类…google Colab…",),
        ("001",),
    ),
    WithoutClaim(
        "a reason to warm up, from experience; the documents' own loop warms up over no update",
        ("其作用可以用来避免梯度爆炸…",),
        ("001",),
    ),
    WithoutClaim(
        "of another chapter's loop",
        ("You can see that the core of the training loop …",),
        ("002",),
    ),
    WithoutClaim(
        "of what the loop does not have: no line of it could report anything",
        ("We didn’t ask for any reporting, …", "El … esto no reporta nada …"),  # noqa: RUF001
        ("002", "003"),
    ),
    WithoutClaim(
        "no run can show it: recorded seeds of all three loops do (docs/baselines.md)",
        ("Now we’ll see how to achieve the same results …",),  # noqa: RUF001
        ("002", "004"),
    ),
    WithoutClaim(
        "an exercise: `harness run --recipe sst2` does it",
        ("✏️ Try it out!", "Modify the previous training loop … SST-2 dataset."),
        ("002",),
    ),
)
"""Passages of the documents that nothing is checked of, and why. The first entry that fits counts."""
