"""The pretraining script makes what is shipped, and makes the same again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from transformers import AutoTokenizer, BertForPreTraining

from harness.documented_run.sources.builtin import CHECKPOINT
from scripts import pretrain


def test_same_seed_same_weights() -> None:
    (first, losses), (second, again) = pretrain.pretrain(3), pretrain.pretrain(3)
    assert losses == again
    assert all(torch.equal(tensor, second.state_dict()[name]) for name, tensor in first.state_dict().items())


@pytest.mark.nightly
def test_it_learns() -> None:
    _, begun = pretrain.pretrain(2)
    _, trained = pretrain.pretrain(50)
    assert trained["words"] < begun["words"] - 0.1


def test_writes_a_checkpoint_and_how_it_was_made(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    result = CliRunner().invoke(pretrain.main, ["--output", str(tmp_path), "--updates", "1"])
    torch.set_num_threads(threads)
    assert result.exit_code == 0, result.output
    BertForPreTraining.from_pretrained(tmp_path)
    made = json.loads((tmp_path / "pretraining.json").read_text())
    assert (made["updates"], made["seed"]) == (1, pretrain.PRETRAINING_SEED)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        assert json.loads((tmp_path / name).read_text()) == json.loads((CHECKPOINT / name).read_text()), name


def test_shipped_tokenizer_splits_names() -> None:
    tokenizer = AutoTokenizer.from_pretrained(CHECKPOINT)
    assert tokenizer.tokenize("Tarvex bought Belmont .") == ["tar", "##vex", "bought", "bel", "##mont", "."]
    assert tokenizer.model_max_length == 128


def test_targets_of_a_batch() -> None:
    """Exchanged pairs are not judged word by word; in the others exactly the contradicting words are marked."""
    tokenizer = pretrain.make_tokenizer()
    torch.manual_seed(0)
    batch = next(pretrain.batches(tokenizer, 5))
    rows = len(batch.not_next)
    exchanged = int(rows * pretrain.NOT_NEXT_SHARE)
    assert batch.not_next.tolist() == [1] * exchanged + [0] * (rows - exchanged)
    assert (batch.contradicted[:exchanged] == pretrain.IGNORED).all()
    judged = batch.contradicted != pretrain.IGNORED
    assert not (judged & (batch.inputs["token_type_ids"] == 0)).any()
    assert batch.contradicted[judged].float().mean().item() == pytest.approx(0.08, abs=0.06)
    masked = batch.words != pretrain.IGNORED
    assert (batch.inputs["input_ids"][masked] == tokenizer.mask_token_id).all()
