"""Every difference between library versions, and nothing else; each named after what differs.

Each function says from which version on which behaviour holds. What can be asked of the library itself (a name, a
keyword) is asked; a version is compared only where nothing can be asked.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from typing import Any, NamedTuple


def _is_at_least(package: str, release: str) -> bool:
    """Also where it is not installed: of a library that is not there nothing is asked."""
    from importlib.metadata import PackageNotFoundError, version  # packaging takes longer to import than this module

    from packaging.version import Version

    try:
        return Version(version(package)) >= Version(release)
    except PackageNotFoundError:
        return True


def fp32_precision() -> dict[str, str]:
    """How float32 products are computed, by backend: "ieee" in full, "tf32" and "bf16" with fewer bits.

    From torch 2.9 on each backend has its own ``fp32_precision``, "none" where nobody set it, and asking the older,
    global setting raises once one of them was set.
    """
    import torch

    matmul: Any = torch.backends.cuda.matmul
    if hasattr(matmul, "fp32_precision"):
        mkldnn: Any = torch.backends.mkldnn
        found = {"matmul": matmul.fp32_precision, "cpu": mkldnn.matmul.fp32_precision}
        return {backend: "ieee" if precision == "none" else precision for backend, precision in found.items()}
    in_full = torch.get_float32_matmul_precision() == "highest"
    return {"matmul": "tf32" if matmul.allow_tf32 else "ieee", "cpu": "ieee" if in_full else "bf16"}


def as_list(column: Iterable[Any]) -> list[Any]:
    """A dataset's column for a tokenizer.

    From datasets 4.0 on ``dataset["sentence1"]`` is a ``Column``, which tokenizers refuse; it was a list before.
    """
    return list(column)


def no_progress_bars() -> None:
    """No bars of datasets: ``disable_progress_bars`` from datasets 2.16 on, ``disable_progress_bar`` until 2.15."""
    import datasets

    if hasattr(datasets, "disable_progress_bars"):
        datasets.disable_progress_bars()
    else:
        datasets.disable_progress_bar()


def configuration(name: str | None) -> dict[str, Any]:
    """``load_dataset``'s keywords for one configuration of a dataset on the hub.

    datasets reads the configurations of a dataset's card from 2.14 on. Before, it took the files of all of them without
    a word: all of GLUE for MRPC.
    """
    if name is None:
        return {}
    if _is_at_least("datasets", "2.14"):
        return {"name": name}
    return {"data_files": {split: f"{name}/{split}-*.parquet" for split in ("train", "validation", "test")}}


def without_scripts() -> dict[str, Any]:
    """``load_dataset``'s keyword that leaves a dataset's own Python code unexecuted.

    datasets has it from 2.16 to 3.6; from 4.0 on it executes none.
    """
    from datasets import load_dataset

    known = "trust_remote_code" in inspect.signature(load_dataset).parameters
    return {"trust_remote_code": False} if known else {}


def offline_setting() -> str:
    """The setting of ``datasets.config`` that keeps it off the network.

    ``HF_HUB_OFFLINE`` from datasets 2.21 on, ``HF_DATASETS_OFFLINE`` before.
    """
    from datasets import config

    return "HF_HUB_OFFLINE" if hasattr(config, "HF_HUB_OFFLINE") else "HF_DATASETS_OFFLINE"


def evaluation_strategy(strategy: str) -> dict[str, Any]:
    """TrainingArguments' keyword for when to evaluate.

    ``eval_strategy`` from transformers 4.41 on; ``evaluation_strategy``, the documents' word, until 4.50.
    """
    from transformers import TrainingArguments

    name = "eval_strategy" if _takes(TrainingArguments, "eval_strategy") else "evaluation_strategy"
    return {name: strategy}


def processing_class(tokenizer: Any) -> dict[str, Any]:
    """Trainer's keyword for the tokenizer.

    ``processing_class`` from transformers 4.46 on; ``tokenizer``, the documents' word, until 4.57.
    """
    from transformers import Trainer

    return {"processing_class" if _takes(Trainer, "processing_class") else "tokenizer": tokenizer}


def without_position_ids(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """A model's state without the numbers of the positions, which are computed.

    transformers kept them in the state until 4.30.
    """
    return {name: tensor for name, tensor in tensors.items() if name.rpartition(".")[2] != "position_ids"}


def told_of_weights(messages: Iterable[str]) -> tuple[set[str], set[str]]:
    """The weights that transformers calls new, and those that it calls unused, in what it logs of loading a model.

    A sentence with a list of names for each until 4.57; a table from 5.0 on, which says ``layer.{0, 1}.bias``, so the
    numbers of layers are "*" here. The sentence on unused weights is a warning in 4.30, as in the documents, and at
    INFO in 4.49 and 4.57 where the checkpoint is of another class; the table is a warning.
    """
    new: set[str] = set()
    unused: set[str] = set()
    for message in messages:
        plain = without_colours(message)
        for told, row, sentence in (
            (new, r"^(\S.*?) *\| *MISSING", r"newly initialized: *[\[{](.*?)[\]}]"),
            (unused, r"^(\S.*?) *\| *UNEXPECTED", r"not used when initializing \w+: *[\[{](.*?)[\]}]"),
        ):
            told |= set(re.findall(row, plain, re.MULTILINE))
            told |= {name for names in re.findall(sentence, plain, re.DOTALL) for name in re.findall(r"'(.*?)'", names)}
    return set(map(without_numbers, new)), set(map(without_numbers, unused))


def without_colours(message: str) -> str:
    """What a library says, without the codes by which a terminal shows it in colour or bold."""
    return re.sub(r"\x1b\[[0-9;]*m", "", message)


def without_numbers(name: str) -> str:
    """A tensor's name with "*" for the number of each layer, or for several that were merged."""
    return re.sub(r"(?<=\.)(\{[^}]*\}|\d+)(?=\.|$)", "*", name)


def adamw_classes() -> tuple[type[Any], ...]:
    """Torch's AdamW and, until transformers 4.49, transformers' own, which the documents import."""
    from torch.optim import AdamW
    from transformers import optimization

    own = getattr(optimization, "AdamW", None)
    return (AdamW,) if own is None else (AdamW, own)


def refused_by_the_hub(dataset: str) -> tuple[str, str] | None:
    """The name and words of the error with which the hub's client refuses a dataset's name; None where it takes it.

    From huggingface_hub 1.16 on names without an owner ("glue") are refused. The client is asked without a network:
    whether the dataset is there is answered with yes.
    """
    from huggingface_hub import HfFileSystem

    class Asked(HfFileSystem):
        cachable = False

        def _repo_and_revision_exist(self, *args: Any, **kwargs: Any) -> tuple[bool, None]:
            return True, None

    try:
        Asked().resolve_path(f"datasets/{dataset}")
    except ValueError as error:
        return type(error).__name__, str(error)
    return None


def split_batches(value: bool) -> dict[str, Any]:
    """Accelerator's keywords for whether a batch is shared among the processes.

    In a ``DataLoaderConfiguration`` from accelerate 0.28 on; a keyword of its own until then.
    """
    from accelerate import utils

    configuration = getattr(utils, "DataLoaderConfiguration", None)
    return {"split_batches": value} if configuration is None else {"dataloader_config": configuration(value)}


def shared_states() -> list[dict[str, Any]]:
    """What all Accelerators of a process share: settings, gradients, and the processes last.

    ``PartialState``, the processes alone, was taken out of ``AcceleratorState`` in accelerate 0.17.
    """
    state = import_module("accelerate.state")
    names = ("AcceleratorState", "GradientState", "PartialState")
    return [getattr(state, name)._shared_state for name in names if hasattr(state, name)]


def accelerates_variable(name: str) -> str:
    """The environment variable that Accelerate reads, say ``ACCELERATE_USE_CPU``.

    They begin with ``ACCELERATE_`` from accelerate 0.15 on, and had no such beginning before.
    """
    return name if _is_at_least("accelerate", "0.15") else name.removeprefix("ACCELERATE_")


def join_processes(*, cpu: bool, timeout: timedelta) -> None:
    """Join the processes that a launcher started, as every Accelerator made later does.

    By ``PartialState`` from accelerate 0.17 on, which does not read ``ACCELERATE_USE_CPU`` itself.
    """
    state = import_module("accelerate.state")
    if hasattr(state, "PartialState"):
        state.PartialState(cpu=cpu, timeout=timeout)
    else:
        os.environ[accelerates_variable("ACCELERATE_USE_CPU")] = str(cpu).lower()
        state.AcceleratorState(cpu=cpu, timeout=timeout, _from_accelerator=True)


def has_load_metric() -> bool:
    """Whether datasets still loads metrics, as the documents' oldest version does; gone from datasets 3.0 on."""
    import datasets

    return hasattr(datasets, "load_metric")


def trainers_optimizer() -> str:
    """Trainer's default optimizer.

    "adamw_hf", transformers' own, until transformers 4.31; "adamw_torch" from 4.32 on; "adamw_torch_fused" from 4.54.1
    on, with torch from 2.8 on.
    """
    from transformers import TrainingArguments

    default = next(each.default for each in fields(TrainingArguments) if each.name == "optim")
    return str(getattr(default, "value", default))


def reports_to() -> str:
    """Where Trainer reports by default: to "all" trackers there are until transformers 4.57, to "none" from 5.0 on."""
    from transformers import TrainingArguments

    default = next(each.default for each in fields(TrainingArguments) if each.name == "report_to")
    return "all" if default is None else str(default)


def attention() -> str:
    """How BERT computes its attention by default: "eager" until transformers 4.40, "sdpa" from 4.41 on."""
    from transformers import BertConfig, BertModel

    small = BertConfig(vocab_size=8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4)
    return str(getattr(BertModel(small).config, "_attn_implementation", "eager"))


def columns() -> str:
    """What a dataset's column is: a "list", and from datasets 4.0 on a "Column"."""
    from datasets import Dataset

    return type(Dataset.from_dict({"sentence1": ["a"]})["sentence1"]).__name__


class VersionFact(NamedTuple):
    """Something that readers meet differently from version to version."""

    name: str
    documented: str
    """What holds for the documents' code as printed."""
    found: Callable[[], str]


FACTS = {
    "adamw": VersionFact("package of AdamW", "transformers", lambda: _own_name(adamw_classes()[-1])),
    "load-metric": VersionFact(
        "package of the metrics", "datasets", lambda: "datasets" if has_load_metric() else "evaluate"
    ),
    "short-name": VersionFact(
        'the dataset\'s name "glue"', "taken", lambda: "refused" if refused_by_the_hub("glue") else "taken"
    ),
    "column": VersionFact("type of a dataset's column", "list", columns),
    "evaluation-keyword": VersionFact(
        "keyword for the evaluation strategy (TrainingArguments)",
        "evaluation_strategy",
        lambda: _takes_of("TrainingArguments", "evaluation_strategy", "eval_strategy"),
    ),
    "tokenizer-keyword": VersionFact(
        "keyword for the tokenizer (Trainer)",
        "tokenizer",
        lambda: _takes_of("Trainer", "tokenizer", "processing_class"),
    ),
    "trainers-optimizer": VersionFact("Trainer's default optimizer", "adamw_hf", trainers_optimizer),
    "reports-to": VersionFact("where Trainer reports by default", "all", reports_to),
    "attention": VersionFact("implementation of BERT's attention", "eager", attention),
    "split-batches": VersionFact(
        "keyword for splitting batches (Accelerator)", "split_batches", lambda: next(iter(split_batches(True)))
    ),
}
"""Facts by id: what the documents' code relies on, and what the versions have."""


def facts() -> dict[str, str]:
    """What the installed versions have, for each of :data:`FACTS`; a version to come may not tell in the same way."""

    def value_of(fact: VersionFact) -> str:
        try:
            return fact.found()
        except Exception as error:  # noqa: BLE001 - a run is worth more than this
            return f"unknown ({type(error).__name__})"

    return {name: value_of(fact) for name, fact in FACTS.items()}


def _own_name(kind: type[Any]) -> str:
    return "torch" if kind.__module__.startswith("torch") else "transformers"


def _takes_of(owner: str, *names: str) -> str:
    """Which of the names a class of transformers takes."""
    return ", ".join(name for name in names if _takes(getattr(import_module("transformers"), owner), name))


def _takes(function: Any, name: str) -> bool:
    return name in inspect.signature(function).parameters
