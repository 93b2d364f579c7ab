"""The documents' claims as data, and the invariants that checks stand for besides them.

The documents are Hugging Face's course, chapter 3, as five readers kept it: "Processing the data" and "Fine-tuning a
model with the Trainer API" (001), "A full training" (000 to 004). A claim is *exact* where every correct run shows it,
and *ball park* where the document itself says that results vary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.recipe import RECIPES, Recipe

BALL_PARK = 0.06
"""How far from the documented figures is still their ball park: 2.5 standard deviations of five published MRPC seeds of
bert-base-uncased (transformers issue 346: accuracy 0.792 to 0.846, standard deviation 0.025)."""

DOCUMENTED = Recipe()
_MRPC = DOCUMENTED.dataset
_SST2 = RECIPES["sst2"].dataset
_BUILT_IN = RECIPES["tiny"].dataset

_HUB = "Processing the data: loading a dataset from the Hub"
_PREPROCESSING = "Processing the data: preprocessing a dataset"
_PADDING = "Processing the data: dynamic padding"
_PREPARE = "A full training: prepare for training"
_TRAINING = "A full training: the training loop"
_EVALUATION = "A full training: the evaluation loop"
_ACCELERATE = "A full training: supercharge your training loop with Accelerate"
_TRAINER = "Fine-tuning a model with the Trainer API: training"
_TRAINER_EVALUATION = "Fine-tuning a model with the Trainer API: evaluation"


@dataclass(frozen=True)
class Claim:
    """One sentence or printed output of a document.

    ``only`` names the recipe fields that the claim depends on and the values with which it applies; with any other
    value the claim is reported as not applicable, never as passed.
    """

    id: str
    stage: str
    says: str
    expected: Any
    documents: tuple[str, ...]
    section: str
    kind: Literal["exact", "ball park"] = "exact"
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def not_applicable(self, recipe: Recipe) -> str | None:
        """Why this claim says nothing about the recipe; None where it does."""
        for name, allowed in self.only.items():
            found = getattr(recipe, name)
            if found not in allowed:
                return f"about {name} {' or '.join(map(str, allowed))}; this recipe has {found}"
        return None


def _as_documented(*names: str) -> dict[str, tuple[Any, ...]]:
    return {name: (getattr(DOCUMENTED, name),) for name in names}


_ALL = ("000", "001", "002", "003", "004")
_MRPC_ONLY = _as_documented("dataset")
_SHAPE = {"dataset": (_MRPC, _BUILT_IN, _SST2)}


def _sizes(mrpc: Any, sst2: Any) -> dict[str, Any]:
    """By corpus: the documents' own, the built-in one of its shape, and that of the exercise."""
    return {_MRPC: mrpc, _BUILT_IN: mrpc, _SST2: sst2}


_VOCABULARY = _as_documented("vocabulary")
_ONE_PROCESS = _as_documented("processes")
_BY_HAND = {"loop": ("plain", "accelerate")}
_UNDER_ACCELERATE = {"loop": ("accelerate",)}
_WITH_TRAINER = {"loop": ("trainer",)}
_PAIRS = {"text_columns": (DOCUMENTED.text_columns,)}

_DOCUMENTED_RESULT = _MRPC_ONLY | _as_documented(
    "pretrained", "batch_size", "lr", "epochs", "schedule", "warmup_updates", "processes"
)

_CLAIMS = [
    # load
    Claim(
        "split-sizes",
        "load",
        "The dataset has 3,668 training, 408 validation and 1,725 test rows (SST-2, the exercise: 67,349, 872, 1,821).",
        _sizes({"train": 3668, "validation": 408, "test": 1725}, {"train": 67349, "validation": 872, "test": 1821}),
        ("001",),
        _HUB,
        only=_SHAPE,
    ),
    Claim(
        "raw-columns",
        "load",
        "Every split has the two sentences, the label and the row's number.",
        [*DOCUMENTED.text_columns, DOCUMENTED.label_column, "idx"],
        ("001",),
        _HUB,
        only=_as_documented("text_columns", "label_column"),
    ),
    Claim(
        "raw-features",
        "load",
        "Sentences are strings, the label is a ClassLabel, idx is an int32.",
        {"sentence": "string", "label": "ClassLabel", "idx": "int32"},
        ("001",),
        _HUB,
    ),
    Claim(
        "label-names",
        "load",
        "Label 0 is called not_equivalent and label 1 equivalent.",
        list(DOCUMENTED.label_names),
        ("001",),
        _HUB,
        only=_as_documented("label_names"),
    ),
    Claim(
        "first-training-row",
        "load",
        'The first training row is the "Amrozi" pair, idx 0, label 1 (kept as the SHA-256 of both sentences).',
        {"idx": 0, "label": 1, "sha256": "405bc0b3e669e29da1cdc4df9d345a3ef3a2f90221f009171fceb6a744ed9e61"},
        ("001",),
        _HUB,
        only=_MRPC_ONLY,
    ),
    # tokenize
    Claim(
        "documented-pair-ids",
        "tokenize",
        '"This is the first sentence." with "This is the second one." gives these 15 input ids.',
        [101, 2023, 2003, 1996, 2034, 6251, 1012, 102, 2023, 2003, 1996, 2117, 2028, 1012, 102],
        ("001",),
        _PREPROCESSING,
        only=_VOCABULARY,
    ),
    Claim(
        "documented-pair-tokens",
        "tokenize",
        "The same ids read back as [CLS], the first sentence, [SEP], the second sentence, [SEP].",
        "[CLS] this is the first sentence . [SEP] this is the second one . [SEP]".split(),
        ("001",),
        _PREPROCESSING,
        only=_VOCABULARY,
    ),
    Claim(
        "documented-pair-token-type-ids",
        "tokenize",
        "token_type_ids is 0 for [CLS], the first sentence and its [SEP], and 1 for the second sentence and its [SEP].",
        [0] * 8 + [1] * 7,
        ("001",),
        _PREPROCESSING,
        only=_VOCABULARY,
    ),
    Claim(
        "documented-pair-attention-mask",
        "tokenize",
        "The attention_mask of the pair is 1 throughout.",
        [1] * 15,
        ("001",),
        _PREPROCESSING,
        only=_VOCABULARY,
    ),
    Claim(
        "pair-encoding",
        "tokenize",
        "Two sentences become one sequence [CLS] A [SEP] B [SEP] whose token_type_ids tell them apart.",
        "[CLS] A [SEP] B [SEP], segments 0 then 1",
        ("001",),
        _PREPROCESSING,
        only=_PAIRS,
    ),
    Claim(
        "plain-lists",
        "tokenize",
        "tokenizer(..., padding=True) on a whole column returns a dictionary of plain lists, all in memory "
        "(given the column as a list: from datasets 4.0 on tokenizers refuse the documents' own Column).",
        "dict of lists, each as long as the longest row",
        ("001",),
        _PREPROCESSING,
    ),
    Claim(
        "map-keeps-dataset",
        "tokenize",
        "map(batched=True) keeps a DatasetDict with every row and column, and adds what the tokenizer returns.",
        ["attention_mask", "input_ids", "token_type_ids"],
        ("001",),
        _PREPROCESSING,
    ),
    Claim(
        "no-padding-at-tokenization",
        "tokenize",
        "Rows are not padded when they are tokenized; that is left to the batch.",
        "every row at its own length",
        ("001",),
        _PREPROCESSING,
    ),
    Claim(
        "truncation",
        "tokenize",
        "truncation=True: no row is longer than the model takes.",
        "at most the model's maximum length",
        _ALL,
        _PREPROCESSING,
    ),
    Claim(
        "first-eight-lengths",
        "tokenize",
        "The first eight training rows have 50, 59, 47, 67, 59, 50, 62 and 32 tokens.",
        [50, 59, 47, 67, 59, 50, 62, 32],
        ("001",),
        _PADDING,
        only=_MRPC_ONLY | _VOCABULARY,
    ),
    Claim(
        "fixed-length-padding",
        "tokenize",
        'For TPUs: padding="max_length" with max_length pads every row to one fixed length.',
        "every row of one length",
        ("002", "004"),
        _ACCELERATE,
    ),
    # columns
    Claim(
        "text-columns-removed",
        "columns",
        "Columns that the model does not expect (the sentences and idx) are removed.",
        "none of the raw columns but the label",
        _ALL,
        _PREPARE,
    ),
    Claim("label-renamed", "columns", "The column label is renamed to labels.", "labels", _ALL, _PREPARE),
    Claim(
        "model-columns",
        "columns",
        "What is left is attention_mask, input_ids, labels and token_type_ids (the order differs between versions).",
        {"attention_mask", "input_ids", "labels", "token_type_ids"},
        _ALL,
        _PREPARE,
    ),
    Claim("torch-format", "columns", "Rows come as PyTorch tensors.", "torch.Tensor", _ALL, _PREPARE),
    # batches
    Claim(
        "first-eight-batch",
        "batches",
        "The first eight training rows collate to 8 x 67, labels 8.",
        {"attention_mask": [8, 67], "input_ids": [8, 67], "token_type_ids": [8, 67], "labels": [8]},
        ("001",),
        _PADDING,
        only=_MRPC_ONLY | _VOCABULARY,
    ),
    Claim(
        "batch-keys",
        "batches",
        "A batch has attention_mask, input_ids, labels and token_type_ids.",
        {"attention_mask", "input_ids", "labels", "token_type_ids"},
        _ALL,
        _PREPARE,
    ),
    Claim(
        "batch-shapes",
        "batches",
        "A batch is 8 x the longest of its rows, labels 8 (the document's own sample: 65 long, differs by shuffling).",
        "batch size x the longest row in the batch; labels: batch size",
        _ALL,
        _PREPARE,
        only=_as_documented("batch_size"),
    ),
    Claim(
        "dynamic-padding",
        "batches",
        "The collator pads each batch to its own longest row; attention_mask is 0 exactly on the padding.",
        "padding id, mask 0 and segment 0 behind each row, nothing else changed",
        ("001",),
        _PADDING,
    ),
    Claim(
        "train-shuffled",
        "batches",
        "The training data is shuffled, anew for every epoch.",
        "another order than the dataset's, and another every epoch",
        _ALL,
        _PREPARE,
        only=_as_documented("shuffle"),
    ),
    Claim(
        "eval-in-order",
        "batches",
        "The validation data is not shuffled.",
        "the dataset's order, every row once",
        _ALL,
        _PREPARE,
    ),
    Claim(
        "batches-per-epoch",
        "batches",
        "1377 updates in three epochs are 459 batches an epoch: all rows, the last batch included (SST-2: 8419).",
        _sizes(459, 8419),
        ("002", "003"),
        _PREPARE,
        only=_SHAPE | _as_documented("batch_size"),
    ),
    Claim(
        "fixed-length-batches",
        "batches",
        'For TPUs: with padding="max_length" and max_length=128 every batch is 8 x 128.',
        128,
        ("002", "004"),
        _ACCELERATE,
    ),
    # model
    Claim(
        "head-newly-initialised",
        "model",
        "The pretraining head is discarded and a new classification head is initialised at random.",
        "classifier weights that are not the checkpoint's",
        ("001",),
        _TRAINER,
    ),
    Claim(
        "backbone-from-checkpoint",
        "model",
        "Everything below the head comes from the checkpoint.",
        "each backbone tensor equal to the checkpoint's",
        ("001",),
        _TRAINER,
    ),
    Claim("num-labels", "model", "The model is created with num_labels=2.", DOCUMENTED.num_labels, _ALL, _PREPARE),
    Claim(
        "loss-with-labels",
        "model",
        "The model returns the loss when labels are given.",
        "a scalar loss with labels, none without",
        ("002", "003"),
        _PREPARE,
    ),
    Claim(
        "logits-shape",
        "model",
        "There are two logits for each input of the batch: 8 x 2.",
        [DOCUMENTED.batch_size, DOCUMENTED.num_labels],
        _ALL,
        _PREPARE,
        only=_as_documented("batch_size"),
    ),
    Claim(
        "first-loss",
        "model",
        "The loss of the first batch is near ln 2 (the documents' one unseeded sample: 0.5441).",
        {"near": math.log(2), "sample": 0.5441},
        ("000", "001", "002", "003", "004"),
        _PREPARE,
        kind="ball park",
    ),
    Claim(
        "device-choice",
        "model",
        "Model and batches go to the GPU where there is one, else to the CPU.",
        "cuda if available, else cpu",
        _ALL,
        _TRAINING,
        only=_as_documented("loop"),
    ),
    # trainer
    Claim(
        "trainer-defaults",
        "trainer",
        'TrainingArguments("test-trainer") alone: three epochs, batches of 8, linear decay from 5e-5, no warmup, the '
        "loss every 500 updates.",
        {
            "num_train_epochs": 3,
            "per_device_train_batch_size": 8,
            "per_device_eval_batch_size": 8,
            "learning_rate": 5e-5,
            "lr_scheduler_type": "linear",
            "warmup_steps": 0,
            "logging_steps": 500,
        },
        ("001", "002", "003"),
        _TRAINER,
        only=_WITH_TRAINER,
    ),
    Claim(
        "trainer-collator",
        "trainer",
        "Given the tokenizer and no collator, Trainer uses DataCollatorWithPadding.",
        "DataCollatorWithPadding",
        ("001",),
        _TRAINER,
        only=_WITH_TRAINER,
    ),
    Claim(
        "trainer-postprocessing",
        "trainer",
        "Trainer removes the unused columns, names the labels and makes tensors by itself.",
        "the batches that A full training makes by hand",
        ("002", "004"),
        _PREPARE,
        only=_WITH_TRAINER,
    ),
    Claim(
        "trainer-no-metric",
        "trainer",
        "Without compute_metrics Trainer tells the loss and no metric.",
        "the loss only",
        ("001",),
        _TRAINER,
        only=_WITH_TRAINER,
    ),
    # optimizer
    Claim("adamw", "optimizer", "The optimizer is AdamW.", "AdamW", _ALL, _PREPARE),
    Claim("lr", "optimizer", "The learning rate is 5e-5.", DOCUMENTED.lr, _ALL, _PREPARE, only=_as_documented("lr")),
    Claim(
        "all-parameters",
        "optimizer",
        "The optimizer gets model.parameters(): all of them.",
        "every trainable parameter, once",
        _ALL,
        _PREPARE,
    ),
    Claim(
        "adamw-defaults",
        "optimizer",
        "Nothing but the learning rate is given to AdamW: its other values are the library's defaults.",
        "AdamW's own defaults",
        _ALL,
        _PREPARE,
        only=_BY_HAND,
    ),
    Claim(
        "adamw-semantics",
        "optimizer",
        "AdamW is Adam with a twist for weight decay: the decay is decoupled from the gradient (the documents' "
        "transformers.AdamW: betas 0.9 and 0.999, epsilon 1e-6, weight decay 0, bias correction; torch's: eps 1e-8, "
        "weight decay 0.01).",
        "Decoupled Weight Decay Regularization (Loshchilov, Hutter), algorithm 2",
        _ALL,
        _PREPARE,
    ),
    # prepare
    Claim(
        "accelerate-any-setup",
        "prepare",
        "Accelerator() looks at the environment and initialises the proper distributed setup.",
        "as many processes as were started",
        ("002", "003"),
        _ACCELERATE,
        only=_UNDER_ACCELERATE,
    ),
    Claim(
        "accelerate-prepare",
        "prepare",
        "accelerator.prepare takes the dataloaders, the model and the optimizer, and gives them back wrapped.",
        "each in its place, over what was given",
        ("000", "001", "002", "003", "004"),
        _ACCELERATE,
        only=_UNDER_ACCELERATE,
    ),
    Claim(
        "accelerate-device",
        "prepare",
        "Accelerate handles the device placement: the lines that put the model on the device go.",
        "accelerator.device",
        _ALL,
        _ACCELERATE,
        only=_UNDER_ACCELERATE,
    ),
    Claim(
        "accelerate-batches",
        "prepare",
        "The line that puts the batch on the device goes.",
        "accelerator.device",
        _ALL,
        _ACCELERATE,
        only=_UNDER_ACCELERATE,
    ),
    Claim(
        "accelerate-length",
        "prepare",
        "The number of training steps is counted after prepare: num_epochs * len(train_dl).",
        "the share of one process: ceil(rows / rows of an update)",
        _ALL,
        _ACCELERATE,
        only=_UNDER_ACCELERATE,
    ),
    Claim(
        "accelerate-lr",
        "prepare",
        "The script under Accelerate has the learning rate 3e-5.",
        3e-5,
        _ALL,
        _ACCELERATE,
        only=_UNDER_ACCELERATE | {"lr": (3e-5,)},
    ),
    # schedule
    Claim(
        "updates-planned",
        "schedule",
        "The number of training steps is the number of epochs times the length of the training dataloader.",
        "epochs x len(train_dataloader)",
        ("001", "002", "003"),
        _PREPARE,
    ),
    Claim(
        "num-training-steps",
        "schedule",
        "That is 1377 (SST-2: 25257).",
        _sizes(1377, 25257),
        ("002", "003", "004"),
        _PREPARE,
        only=_SHAPE | _as_documented("batch_size", "epochs") | _ONE_PROCESS,
    ),
    Claim(
        "no-warmup",
        "schedule",
        "There is no warmup: the first update is made at the full learning rate.",
        DOCUMENTED.lr,
        _ALL,
        _PREPARE,
        only=_as_documented("warmup_updates"),
    ),
    Claim(
        "linear-decay",
        "schedule",
        "The learning rate falls linearly from its maximum.",
        "lr x (1 - updates made / updates planned)",
        ("002", "003"),
        _PREPARE,
        only=_as_documented("schedule"),
    ),
    Claim(
        "decay-to-zero",
        "schedule",
        "The learning rate ends at 0.",
        0.0,
        ("002", "003"),
        _PREPARE,
        only=_as_documented("schedule"),
    ),
    # equivalence
    Claim(
        "accelerate-same-training",
        "equivalence",
        "The loop under Accelerate is the plain loop with just a few adjustments.",
        "the same losses and parameters",
        ("002", "003"),
        _ACCELERATE,
        only=_UNDER_ACCELERATE,
    ),
    Claim(
        "trainer-same-defaults",
        "equivalence",
        'The loop by hand uses "the same defaults" as Trainer (so it is once the differences that are listed are '
        "switched off).",
        "the same losses and parameters without the listed differences",
        ("002", "004"),
        _PREPARE,
        only=_WITH_TRAINER,
    ),
    # train
    Claim("train-mode", "train", "The model trains in train mode: model.train().", "train mode", _ALL, _TRAINING),
    Claim(
        "one-update-a-batch",
        "train",
        "Each batch is one forward, one backward and one update: 1377 in all (SST-2: 25257).",
        "epochs x len(train_dataloader) updates",
        _ALL,
        _TRAINING,
        only=_SHAPE | _as_documented("batch_size", "epochs") | _ONE_PROCESS,
    ),
    Claim(
        "progress-bar",
        "train",
        "A progress bar counts the training steps, all 1377 of them (SST-2: 25257).",
        "one tick an update, to the end",
        _ALL,
        _TRAINING,
        only=_SHAPE | _as_documented("batch_size", "epochs") | _ONE_PROCESS,
    ),
    Claim(
        "lr-follows-schedule",
        "train",
        "The scheduler is stepped once after each update.",
        "the scheduled learning rate at every update, and after the last",
        _ALL,
        _TRAINING,
    ),
    Claim(
        "zero-grad",
        "train",
        "The gradients are reset after each update.",
        "no gradient left when the next backward pass begins",
        _ALL,
        _TRAINING,
    ),
    Claim(
        "batches-on-device",
        "train",
        "Every tensor of a batch is moved to the model's device.",
        "the model's device",
        _ALL,
        _TRAINING,
    ),
    Claim(
        "trainer-logging",
        "train",
        "Trainer tells the loss every 500 updates.",
        500,
        ("001",),
        _TRAINER,
        only=_WITH_TRAINER,
    ),
    Claim(
        "trainer-evaluation",
        "train",
        'With evaluation_strategy="epoch" and compute_metrics Trainer tells loss and metrics after every epoch.',
        "one evaluation an epoch, with accuracy and F1",
        ("001",),
        _TRAINER_EVALUATION,
        only=_WITH_TRAINER,
    ),
    # evaluate
    Claim(
        "eval-mode", "evaluate", "The model is evaluated in eval mode: model.eval().", "eval mode", _ALL, _EVALUATION
    ),
    Claim(
        "no-grad",
        "evaluate",
        "No gradients are computed in evaluation: torch.no_grad().",
        "gradients disabled in every forward",
        _ALL,
        _EVALUATION,
    ),
    Claim(
        "whole-validation-set",
        "evaluate",
        "The evaluation goes through the whole evaluation dataloader.",
        "each validation row once, in order",
        _ALL,
        _EVALUATION,
    ),
    Claim(
        "argmax",
        "evaluate",
        "The prediction is the argmax of the logits.",
        "argmax over the last dimension",
        _ALL,
        _EVALUATION,
    ),
    Claim(
        "add-batch",
        "evaluate",
        "add_batch collects the predictions and labels of every batch.",
        "as many predictions as rows, each with its own label",
        _ALL,
        _EVALUATION,
    ),
    Claim(
        "metric-values",
        "evaluate",
        "metric.compute() gives accuracy and F1 of everything that was added.",
        ["accuracy", "f1"],
        _ALL,
        _EVALUATION,
    ),
    Claim(
        "ball-park",
        "evaluate",
        "Fine-tuning bert-base-uncased on MRPC ends in the ball park of accuracy 0.8431 and F1 0.8908.",
        {"accuracy": 0.8431372549019608, "f1": 0.8907849829351535},
        _ALL,
        _EVALUATION,
        kind="ball park",
        only=_DOCUMENTED_RESULT | _BY_HAND,
    ),
    Claim(
        "trainer-predict",
        "evaluate",
        "Trainer.predict gives predictions (408, 2), label_ids (408,) and metrics.",
        {"predictions": [408, 2], "label_ids": [408]},
        ("001",),
        _TRAINER_EVALUATION,
        only=_WITH_TRAINER,
    ),
    Claim(
        "trainer-logits",
        "evaluate",
        "The predictions are logits, from which softmax makes probabilities; the prediction is their argmax.",
        "the model's logits",
        ("001",),
        _TRAINER_EVALUATION,
        only=_WITH_TRAINER,
    ),
    Claim(
        "trainer-ball-park",
        "evaluate",
        "Trainer ends in the ball park of accuracy 0.8578 and F1 0.8997.",
        {"accuracy": 0.8578431372549019, "f1": 0.8996539792387542},
        ("001",),
        _TRAINER_EVALUATION,
        kind="ball park",
        only=_DOCUMENTED_RESULT | _WITH_TRAINER,
    ),
]

CLAIMS = {claim.id: claim for claim in _CLAIMS}

INVARIANTS = {
    "step-completes": "The documented step runs to its end on this installation.",
    "recipe-respected": "Where the recipe says other than the documents, what it says is what is done.",
    "own-text": "The ids of a row are those of its own sentences, in order, and as far as the model takes them.",
    "non-empty-text": "No sentence is empty; an empty one is a row that was read wrongly.",
    "known-labels": "Every label of the training and validation data is one of the recipe's.",
    "both-classes": "The training and the validation data have rows of every class.",
    "splits-disjoint": "No pair of sentences is in the training data and in the validation data.",
    "rows-aligned": "Every row keeps its own label from the raw data to the model's columns.",
    "batches-cover-rows": "An epoch has as many batches as it takes for all rows.",
    "text-survives": "The tokenizer knows the text: few tokens are [UNK].",
    "full-precision": "The weights are float32; updates of 5e-5 are rounded away in half precision.",
    "loss-is-cross-entropy": "The loss is the cross entropy of the logits and the labels.",
    "padding-invariant": "A row's logits, and the metrics, do not depend on how far its batch is padded.",
    "segments-matter": "token_type_ids reach the model: exchanged segments move the logits.",
    "all-trainable": "No parameter of the model is frozen: the documents train all of it.",
    "optimizer-bound": "The scheduler drives the optimizer that trains.",
    "rows-once-an-epoch": "Every training row is in exactly one batch of every epoch.",
    "new-order-every-epoch": "No two epochs go through the training rows in one order.",
    "parameters-change": "Every parameter with a gradient changes when it is updated at lr > 0.",
    "gradients-reach-all": "The gradients reach the trainable parameters: no part of the model is cut off.",
    "finite-loss": "Loss and gradient norm are finite at every update.",
    "equal-ranks": "Every rank has the same parameters after every update.",
    "one-process-metrics": "Several processes measure what one would.",
    "accumulation": "Micro-batches that are accumulated are one batch, at the end of an epoch too.",
    "mixed-precision": "bf16 computes what float32 computes, up to its rounding, and trains float32 weights.",
    "labels-untouched": "The labels that the metric gets are the raw validation set's.",
    "better-than-majority": "The trained model beats the answer that is always the more frequent class.",
}
"""What must hold for reasons of our own, by id: each a sentence, as ``harness claims`` prints it."""
