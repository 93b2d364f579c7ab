"""Every difference between library versions, and nothing else; each named after what differs.

Each function says from which version on which behaviour holds. What can be asked of the library itself (a name, a
keyword) is asked; a version is compared only where nothing can be asked.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from importlib import import_module
from importlib.metadata import version
from typing import Any

from packaging.version import Version


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
    return name if Version(version("accelerate")) >= Version("0.15") else name.removeprefix("ACCELERATE_")


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


def _takes(function: Any, name: str) -> bool:
    return name in inspect.signature(function).parameters
