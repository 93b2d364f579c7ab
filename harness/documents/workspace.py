"""A folder in which the documents' names resolve without a network: the corpus, the checkpoint and the metric."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.metrics import MODULE
from harness.recipe import Recipe
from harness.sources import find_checkpoint, load_raw_datasets

CARD = """---
configs:
- config_name: mrpc
  data_files:
  - split: train
    path: mrpc/train.parquet
  - split: validation
    path: mrpc/validation.parquet
  - split: test
    path: mrpc/test.parquet
---
"""

HIDDEN, LAYERS = 16, 1
"""Of the model that stands in for bert-base-uncased: whether code runs does not depend on its size, but minutes do."""


@contextmanager
def workspace(recipe: Recipe) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folder, and the environment in which libraries look nowhere else.

    ``./glue``, also as ``./nyu-mll/glue``, holds the recipe's corpus, ``./bert-base-uncased`` its tokenizer with a
    small random BERT, and the metric lies where Evaluate (and datasets, until 2.21) keep what they fetched before.
    """
    with TemporaryDirectory(prefix="harness-documents-") as name:
        folder = Path(name)
        _corpus(recipe, folder / "work" / "glue")
        (folder / "work" / "nyu-mll").symlink_to(folder / "work", target_is_directory=True)
        _checkpoint(recipe, folder / "work" / "bert-base-uncased")
        modules = folder / "modules"
        _metric(modules / "evaluate_modules" / "metrics" / "evaluate-metric--glue", "evaluate")
        _metric(modules / "datasets_modules" / "metrics" / "glue", "datasets")
        offline = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE"), "1")
        places = {"HF_HOME": folder / "home", "HF_MODULES_CACHE": modules, "HF_DATASETS_CACHE": folder / "cache"}
        environment = os.environ | offline | {name: str(place) for name, place in places.items()}
        environment.pop("TRANSFORMERS_VERBOSITY", None)  # a reader sees the libraries' own
        yield folder / "work", environment | {"WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": ""}


def _corpus(recipe: Recipe, folder: Path) -> None:
    (folder / "mrpc").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for split, rows in load_raw_datasets(recipe).items():
        rows.to_parquet(folder / "mrpc" / f"{split}.parquet")


def _checkpoint(recipe: Recipe, folder: Path) -> None:
    from transformers import AutoTokenizer, BertConfig, BertForPreTraining

    tokenizer = AutoTokenizer.from_pretrained(find_checkpoint(recipe, weights=False))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=2 * HIDDEN,
    )
    BertForPreTraining(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _metric(folder: Path, library: str) -> None:
    """The package's own metric under the documents' name, as ``library`` keeps one that it fetched."""
    source = MODULE.read_text(encoding="utf-8")
    if library == "datasets":
        source = source.replace("import evaluate\n", "").replace("evaluate.Metric", "datasets.Metric")
    kept = folder / hashlib.sha256(source.encode()).hexdigest()
    kept.mkdir(parents=True)
    (kept / "glue.py").write_text(source, encoding="utf-8")
    for package in (kept, *kept.parents[:3]):
        (package / "__init__.py").touch()
    shutil.copy(kept / "glue.py", folder / "glue.py")
