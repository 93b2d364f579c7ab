"""What differs between versions, on both sides of each change.

Each function is asked on the versions that are installed, where the version decides what is expected; and where it can
be played, on the other side as well.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import accelerate
import datasets
import pytest
import torch
import transformers

from harness import compat
from tests.versions import installed

NEW = {
    "adamw": ("transformers>=4.50", "torch", "transformers"),
    "load-metric": ("datasets>=3", "evaluate", "datasets"),
    "short-name": ("huggingface-hub>=1.16", "refused", "taken"),
    "column": ("datasets>=4", "Column", "list"),
    "tokenizer-keyword": ("transformers>=4.46", "processing_class", "tokenizer"),
    "reports-to": ("transformers>=5", "none", "all"),
    "attention": ("transformers>=4.41", "sdpa", "eager"),
    "split-batches": ("accelerate>=0.28", "dataloader_config", "split_batches"),
}
"""By fact: from which version on there is the first value, and the second before it."""


@pytest.mark.parametrize("name", NEW)
def test_a_fact_is_that_of_the_version(name: str) -> None:
    requirement, since, before = NEW[name]
    assert compat.FACTS[name].found() == (since if installed(requirement) else before)


def test_the_evaluation_keyword_is_that_of_the_version() -> None:
    taken = [name for name, on in (("evaluation_strategy", "<4.51"), ("eval_strategy", ">=4.41")) if _transformers(on)]
    assert compat.FACTS["evaluation-keyword"].found() == ", ".join(taken)


def test_trainers_optimizer_is_that_of_the_version() -> None:
    expected = "adamw_torch_fused" if _transformers(">=4.54.1") else "adamw_torch"
    assert compat.trainers_optimizer() == ("adamw_hf" if _transformers("<4.32") else expected)


def _transformers(versions: str) -> bool:
    return installed(f"transformers{versions}")


def test_every_fact_is_found_and_tested() -> None:
    assert compat.facts().keys() == compat.FACTS.keys() == NEW.keys() | {"evaluation-keyword", "trainers-optimizer"}
    assert not any("unknown" in found for found in compat.facts().values())


def test_a_fact_that_cannot_be_found_costs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved() -> str:
        raise ImportError("it is elsewhere now")

    monkeypatch.setitem(compat.FACTS, "column", compat.VersionFact("says", "list", moved))
    assert compat.facts()["column"] == "unknown (ImportError)"


# --------------------------------------------------------------------------------------------- played on the other side


class _Before:
    """A class of an older transformers."""

    def __init__(self, evaluation_strategy: str = "no", tokenizer: Any = None) -> None: ...


class _After:
    """And one of a newer."""

    def __init__(self, eval_strategy: str = "no", processing_class: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("kind", "evaluates", "tokenizes"),
    [(_Before, "evaluation_strategy", "tokenizer"), (_After, "eval_strategy", "processing_class")],
)
def test_keywords_of_trainer(kind: type, evaluates: str, tokenizes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("transformers")
    module.TrainingArguments = module.Trainer = kind
    monkeypatch.setitem(sys.modules, "transformers", module)
    assert compat.evaluation_strategy("epoch") == {evaluates: "epoch"}
    assert compat.processing_class("t") == {tokenizes: "t"}


def test_the_keywords_are_taken() -> None:
    """By the installed classes themselves, not only by their signatures."""
    arguments = transformers.TrainingArguments("folder", report_to="none", **compat.evaluation_strategy("epoch"))
    name = next(iter(compat.evaluation_strategy("epoch")))
    assert getattr(getattr(arguments, name), "value", None) == "epoch"
    accelerate.Accelerator(**compat.split_batches(False), cpu=True)


def test_split_batches_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerate.utils, "DataLoaderConfiguration", lambda value: ("configured", value), raising=False)
    assert compat.split_batches(True) == {"dataloader_config": ("configured", True)}
    monkeypatch.delattr(accelerate.utils, "DataLoaderConfiguration")
    assert compat.split_batches(True) == {"split_batches": True}


@pytest.mark.parametrize(("number", "found"), [("0.14.0", "USE_CPU"), ("0.15.0", "ACCELERATE_USE_CPU")])
def test_accelerates_variables(number: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: number)
    assert compat.accelerates_variable("ACCELERATE_USE_CPU") == found


def test_adamw_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    own = type("AdamW", (), {"__module__": "transformers.optimization"})
    monkeypatch.setattr(transformers.optimization, "AdamW", own, raising=False)
    assert compat.adamw_classes() == (torch.optim.AdamW, own)
    assert compat.FACTS["adamw"].found() == "transformers"
    monkeypatch.delattr(transformers.optimization, "AdamW")
    assert compat.adamw_classes() == (torch.optim.AdamW,)
    assert compat.FACTS["adamw"].found() == "torch"


def test_columns_become_lists() -> None:
    rows = datasets.Dataset.from_dict({"sentence1": ["a", "b"]})
    assert compat.as_list(rows["sentence1"]) == ["a", "b"]


def test_the_hub_takes_names_with_an_owner() -> None:
    assert compat.refused_by_the_hub("nyu-mll/glue") is None


def test_bars_are_switched_off_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for name in ("disable_progress_bars", "disable_progress_bar"):
        monkeypatch.setattr(datasets, name, lambda name=name: called.append(name), raising=False)
    compat.no_progress_bars()
    monkeypatch.delattr(datasets, "disable_progress_bars")
    compat.no_progress_bars()
    assert called == ["disable_progress_bars", "disable_progress_bar"]


def test_the_offline_setting_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False, raising=False)
    assert compat.offline_setting() == "HF_HUB_OFFLINE"
    monkeypatch.delattr(datasets.config, "HF_HUB_OFFLINE")
    assert compat.offline_setting() == "HF_DATASETS_OFFLINE"


def test_positions_are_no_weights() -> None:
    state = {"embeddings.position_ids": 0, "embeddings.position_embeddings.weight": 1}
    assert compat.without_position_ids(state) == {"embeddings.position_embeddings.weight": 1}


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An empty accelerate.state."""
    module = ModuleType("accelerate.state")
    monkeypatch.setitem(sys.modules, "accelerate.state", module)
    return module


def test_processes_are_joined_by_partial_state(state: Any) -> None:
    joined: list[dict[str, Any]] = []
    state.PartialState = lambda **options: joined.append(options)
    compat.join_processes(cpu=True, timeout=timedelta(seconds=1))
    assert joined == [{"cpu": True, "timeout": timedelta(seconds=1)}]


def test_processes_were_joined_by_accelerator_state(state: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.12.0")
    monkeypatch.setenv("USE_CPU", "false")
    joined: list[dict[str, Any]] = []
    state.AcceleratorState = lambda **options: joined.append(options)
    compat.join_processes(cpu=True, timeout=timedelta(seconds=1))
    assert os.environ["USE_CPU"] == "true"
    assert joined == [{"cpu": True, "timeout": timedelta(seconds=1), "_from_accelerator": True}]


def test_what_accelerators_share_before_and_after(state: Any) -> None:
    state.AcceleratorState, state.GradientState = (
        SimpleNamespace(_shared_state={"a": 1}),
        SimpleNamespace(_shared_state={}),
    )
    assert compat.shared_states() == [{"a": 1}, {}]
    state.PartialState = SimpleNamespace(_shared_state={"b": 2})
    assert compat.shared_states() == [{"a": 1}, {}, {"b": 2}]


SENTENCES = (
    "Some weights of the model checkpoint at tiny were not used when initializing BertForSequenceClassification: "
    "['cls.layer.0.bias', 'cls.layer.1.bias']\n- This IS expected if you are initializing",
    "Some weights of BertForSequenceClassification were not initialized from the model checkpoint at tiny and are "
    "newly initialized: ['classifier.bias', 'classifier.weight']\nYou should probably TRAIN this model",
)
TABLE = """\x1b[1mBertForSequenceClassification LOAD REPORT\x1b[0m from: tiny
Key                   | Status     |
----------------------+------------+-
cls.layer.{0, 1}.bias | UNEXPECTED |
classifier.weight     | \x1b[31mMISSING\x1b[0m    |
classifier.bias       | MISSING    |

Notes:
- UNEXPECTED:\tcan be ignored when loading from different task/architecture
- MISSING:\tthose params were newly initialized because missing from the checkpoint.
"""


@pytest.mark.parametrize("messages", [SENTENCES, (TABLE,)], ids=["sentences", "table"])
def test_new_and_unused_weights_are_read_from_either_form(messages: tuple[str, ...]) -> None:
    new, unused = compat.told_of_weights(["loading configuration file config.json", *messages])
    assert new == {"classifier.bias", "classifier.weight"}
    assert unused == {"cls.layer.*.bias"}


def test_nothing_is_told_where_nothing_is_said() -> None:
    assert compat.told_of_weights(["All the weights were initialized from the model checkpoint"]) == (set(), set())
