"""A folder in which the documents' names resolve without a network: the corpus, the checkpoint and the metric."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import site
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.documented_run.metrics import MODULE
from harness.documented_run.recipe import Recipe
from harness.documented_run.sources import find_checkpoint, load_raw_datasets
from harness.processes import Afterwards, afterwards

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
"""Size of the model that stands in for bert-base-uncased: whether code runs does not depend on its size, but minutes
do."""


KEPT = re.compile(
    r"PATH|PYTHONPATH|PYTHONHASHSEED|VIRTUAL_ENV|(DY)?LD_LIBRARY_PATH|LANG|LANGUAGE|LC_\w+|TZ|SYSTEMROOT|RUN_SLOW|"
    r"(OMP|MKL|OPENBLAS)_NUM_THREADS|TOKENIZERS_PARALLELISM"
)
"""The environment variables that a block sees: what Python needs, and how many threads. Tokens are not among them, nor
is anything else of the user's, of a cloud's or of a CI's; a list of what to leave out would lack the next one."""


class Place(NamedTuple):
    """Where blocks run."""

    folder: Path
    environment: dict[str, str]
    afterwards: Afterwards


class Workspace:
    """Makes places to run blocks in: each a folder with copies of the corpus and the checkpoint."""

    def __init__(self, root: Path, afterwards: Afterwards) -> None:
        self.root = root
        self.afterwards = afterwards

    @contextmanager
    def folder(self) -> Iterator[Place]:
        """A place of its own, with its own home and caches, in which libraries look nowhere else; gone afterwards."""
        with TemporaryDirectory(prefix="document-", dir=self.root) as name:
            place = Path(name)
            shutil.copytree(self.root / "work", place / "work")
            (place / "work" / "nyu-mll").symlink_to(place / "work", target_is_directory=True)
            for each in ("home", "tmp"):
                (place / each).mkdir()
            places = {
                "HOME": place / "home",
                "TMPDIR": place / "tmp",
                "HF_HOME": place / "home" / "huggingface",
                "HF_DATASETS_CACHE": place / "home" / "datasets",
                "HF_MODULES_CACHE": self.root / "modules",
            }
            environment = clean_environment() | {name: str(each) for name, each in places.items()}
            yield Place(place / "work", environment, self.afterwards)


def clean_environment() -> dict[str, str]:
    """What of this process's environment a block sees."""
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    if "PYTHONPATH" in kept:  # from another folder
        kept["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, kept["PYTHONPATH"].split(os.pathsep)))
    if site.ENABLE_USER_SITE:
        kept["PYTHONUSERBASE"] = site.getuserbase()
    kept |= dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE"), "1")
    return kept | {"WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": ""}


@contextmanager
def workspace(recipe: Recipe) -> Iterator[Workspace]:
    """What the documents load by name, for as many places as are wanted.

    ``./glue``, also as ``./nyu-mll/glue``, holds the recipe's corpus, ``./bert-base-uncased`` its tokenizer with a
    small random BERT, and the metric lies where Evaluate (and datasets, until 2.21) keep what they fetched before.
    """
    with TemporaryDirectory(prefix="harness-documents-") as name, afterwards(Path(name)) as left_behind:
        root = Path(name)
        _corpus(recipe, root / "work" / "glue")
        _checkpoint(recipe, root / "work" / "bert-base-uncased")
        modules = root / "modules"
        _metric(modules / "evaluate_modules" / "metrics" / "evaluate-metric--glue", "evaluate")
        _metric(modules / "datasets_modules" / "metrics" / "glue", "datasets")
        yield Workspace(root, left_behind)


def _corpus(recipe: Recipe, folder: Path) -> None:
    (folder / "mrpc").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for split, rows in load_raw_datasets(recipe).items():
        rows.to_parquet(folder / "mrpc" / f"{split}.parquet")


def _checkpoint(recipe: Recipe, folder: Path) -> None:
    from transformers import AutoTokenizer, BertConfig, BertForPreTraining

    tokenizer = AutoTokenizer.from_pretrained(find_checkpoint(recipe, weights=False), trust_remote_code=False)
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
