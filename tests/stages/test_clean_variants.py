"""Legitimate recipes that are not the documents': every check holds or says why it does not apply."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from datasets import load_from_disk
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertForMaskedLM,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    DistilBertTokenizerFast,
    ElectraConfig,
    ElectraModel,
)

from harness.documented_run.recipe import BUILT_IN, LOOPS, RECIPES, Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.run import run_recipe
from harness.documented_run.sources import local
from harness.documented_run.sources.builtin import CHECKPOINT
from harness.documented_run.stages import CLAIMS, Run, load
from tests.versions import installed

WORDS = json.loads((CHECKPOINT / "config.json").read_text())["vocab_size"]


def no_error(recipe: Recipe, **options: int) -> RunRecord:
    record = run_recipe(recipe, **options)  # type: ignore[arg-type]
    assert [finding for finding in record.findings if finding.severity == "error"] == []
    return record


def reason(record: RunRecord, check: str) -> str:
    return record.check(check).reason or ""


@pytest.mark.nightly
@pytest.mark.parametrize(
    "changes",
    [
        {"warmup_updates": 3},
        {"schedule": "cosine"},
        {"schedule": "constant"},
        {"shuffle": False},
        {"batch_size": 59},  # the last batch has one row
        {"batch_size": 1000},
        {"lr": 3e-5, "epochs": 1},
        {"seed": 0},
    ],
    ids=str,
)
def test_other_values(small: Recipe, changes: dict[str, object]) -> None:
    no_error(small.with_(**changes))


def test_first_update_of_a_warmup(small: Recipe) -> None:
    record = no_error(small.with_(warmup_updates=3), updates=1)
    assert "learning rate 0" in reason(record, "train::parameters-change")


@pytest.mark.nightly
def test_converged_run(small: Recipe, tmp_path: Path) -> None:
    """Where hardly anything is left to learn, rounding takes the last updates of large weights."""
    rows = load_from_disk(small.data)
    rows["train"] = rows["train"].select(range(16))
    rows["validation"] = rows["validation"].select(range(8))  # one batch: it is gone through after every epoch
    rows.save_to_disk(str(tmp_path))
    no_error(small.with_(data=str(tmp_path), lr=1e-3, schedule="cosine", epochs=147))


@pytest.mark.slow
def test_progress_bars_switched_off(small: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    import tqdm.asyncio
    import tqdm.std

    original = tqdm.std.tqdm.__init__

    def disabled(self: object, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs | {"disable": True})

    monkeypatch.setattr(tqdm.std.tqdm, "__init__", disabled)
    record = no_error(small, updates=5)
    assert record.updates == 5
    assert "TQDM_DISABLE" in reason(record, "train::progress-bar-reaches-the-end")


def test_data_folder_is_left_as_it_was(small: Recipe) -> None:
    assert small.data is not None
    before = sorted(Path(small.data).rglob("*"))
    run_recipe(small, until="columns")
    assert sorted(Path(small.data).rglob("*")) == before


@pytest.mark.slow
def test_an_older_run_hides_nothing(small: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer that a new library version broke is seen, though the same data was tokenized before."""
    from transformers import PreTrainedTokenizerFast

    no_error(small, updates=1)
    encodes = "_encode_plus" if installed("transformers>=5") else "_batch_encode_plus"
    original = getattr(PreTrainedTokenizerFast, encodes)

    def without_segments(self: object, *args: object, **kwargs: object) -> object:
        encoded = original(self, *args, **kwargs)
        encoded["token_type_ids"] = [[0] * len(ids) for ids in encoded["input_ids"]]
        return encoded

    monkeypatch.setattr(PreTrainedTokenizerFast, encodes, without_segments)
    found = {finding.check for finding in run_recipe(small, until="tokenize").findings}
    assert "tokenize::pairs-carry-token-type-ids" in found


@pytest.mark.parametrize("updates", [1, 9, *(pytest.param(each, marks=pytest.mark.nightly) for each in (7, 8, 16))])
def test_stopped_early(small: Recipe, updates: int) -> None:
    assert no_error(small, updates=updates).updates == updates


@pytest.mark.parametrize("loop", ["plain", *(pytest.param(each, marks=pytest.mark.nightly) for each in LOOPS[1:])])
def test_one_sentence(small: Recipe, loop: str, tmp_path: Path) -> None:
    """SST-2, the documents' exercise: every check holds, and those about pairs say nothing."""
    corpus = load_from_disk(small.data)
    for split, name in local.TSV_FILES.items():
        rows = (f"{row['sentence1']} \t{row['label']}\n" for row in corpus[split])
        (tmp_path / name).write_text("".join(["sentence\tlabel\n", *rows]))
    recipe = RECIPES["sst2"].with_(
        dataset="tests/sst2", data=tmp_path, checkpoint=BUILT_IN, vocabulary=BUILT_IN, epochs=1, loop=loop
    )
    record = no_error(recipe)
    assert record.updates == 8
    assert record.check("load::raw-columns").claim == "recipe-respected"
    assert "text_columns" in reason(record, "tokenize::pairs-carry-token-type-ids")


@pytest.mark.nightly
def test_all_of_sst2(tmp_path: Path) -> None:
    """Rows in SST-2's numbers and layout: 8419 batches an epoch, 25257 updates."""
    sizes = CLAIMS["split-sizes"].expected["glue/sst2"]
    for split, name in local.TSV_FILES.items():
        rows = (f"{split} {number} \t{number % 2}\n" for number in range(sizes[split]))
        (tmp_path / name).write_text("".join(["sentence\tlabel\n", *rows]))
    recipe = RECIPES["sst2"].with_(data=tmp_path, checkpoint=BUILT_IN, vocabulary=BUILT_IN)
    run = Run(recipe)
    result = load.STAGE.run(run)
    assert {check.check for check in result.checks if check.outcome != "holds"} == {"load::first-training-row"}
    assert math.ceil(sizes["train"] / recipe.batch_size) == CLAIMS["batches-per-epoch"].expected["glue/sst2"] == 8419
    assert recipe.epochs * 8419 == CLAIMS["num-training-steps"].expected["glue/sst2"] == 25257


@pytest.mark.nightly
def test_rows_that_are_there_twice(small: Recipe, tmp_path: Path) -> None:
    rows = load_from_disk(small.data)
    for split in rows:
        rows[split] = rows[split].select([*range(len(rows[split])), 0, 1, 2])
    rows.save_to_disk(str(tmp_path))
    no_error(small.with_(data=str(tmp_path)))


def _save_tokenizer(folder: Path) -> None:
    AutoTokenizer.from_pretrained(CHECKPOINT).save_pretrained(folder)


def _distilbert(folder: Path) -> None:
    config = DistilBertConfig(vocab_size=WORDS, dim=32, hidden_dim=64, n_layers=2, n_heads=2)
    DistilBertModel(config).save_pretrained(folder)
    DistilBertTokenizerFast.from_pretrained(CHECKPOINT).save_pretrained(folder)


def _electra(folder: Path) -> None:
    config = ElectraConfig(
        vocab_size=WORDS, embedding_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64,
    )  # fmt: skip
    ElectraModel(config).save_pretrained(folder)
    _save_tokenizer(folder)


def _sharded(folder: Path) -> None:
    BertModel.from_pretrained(CHECKPOINT).save_pretrained(folder, max_shard_size="500KB")
    _save_tokenizer(folder)
    kind = "safetensors" if installed("transformers>=4.35") else "bin"
    assert len(list(folder.glob(f"*.{kind}"))) > 1


def _pickled(folder: Path) -> None:
    model = AutoModel.from_pretrained(CHECKPOINT)
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    _save_tokenizer(folder)


def _old_names(folder: Path) -> None:
    """As bert-base-uncased's own file: gamma and beta, and the pretraining heads."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(CHECKPOINT / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((CHECKPOINT / name).read_bytes())


def _masked_words_only(folder: Path) -> None:
    """As BertForMaskedLM saves it: without a pooler."""
    BertForMaskedLM.from_pretrained(CHECKPOINT).save_pretrained(folder)
    _save_tokenizer(folder)


@pytest.mark.nightly
@pytest.mark.parametrize("save", [_distilbert, _electra, _sharded, _pickled, _old_names, _masked_words_only])
def test_other_checkpoints(small: Recipe, tmp_path: Path, save: Callable[[Path], None]) -> None:
    save(tmp_path)
    record = no_error(small.with_(checkpoint=str(tmp_path), vocabulary="tests"))
    if save is _distilbert:
        assert reason(record, "tokenize::pairs-carry-token-type-ids") == "DistilBertConfig knows no second segment"
        assert reason(record, "model::segments-reach-the-model") == "DistilBertConfig knows no second segment"
