"""Which tokens carry a loss: as ``harness tokens`` shows them, and as a test asks for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from harness.errors import CannotTry
from harness.report.tokens import lines
from harness.watch.teaching import TaughtReport, taught
from tests.server import server_of

WORDS = "<pad> <s> </s> <|user|> <|assistant|> what is the capital of france spain it paris madrid".split()
TEMPLATE = "{% for m in messages %}<|{{ m['role'] }}|> {{ m['content'] }} </s> {% endfor %}"

SCRIPT = f"""
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

words = {WORDS!r}
made = Tokenizer(models.WordLevel({{word: number for number, word in enumerate(words)}}, unk_token="<pad>"))
made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", chat_template={TEMPLATE!r}
)
torch.manual_seed(0)


def row(country, city):
    chat = [
        {{"role": "user", "content": f"what is the capital of {{country}}"}},
        {{"role": "assistant", "content": f"it is {{city}}" if city else "it"}},
    ]
    prompt = tokenizer("<s> " + tokenizer.apply_chat_template(chat[:1], tokenize=False))["input_ids"]
    ids = tokenizer("<s> " + tokenizer.apply_chat_template(chat, tokenize=False))["input_ids"]
    padding = 16 - len(ids)
    labels = [-100] * (len(prompt) + 1) + ids[len(prompt) + 1 :] + [-100] * padding
    mask = [1] * len(ids) + [0] * padding
    given = {{"input_ids": ids + [0] * padding, "attention_mask": mask, "labels": labels}}
    return {{name: torch.tensor(each) for name, each in given.items()}}


rows = [row("france", "paris"), row("spain", "madrid"), row("spain", "")] * 8
size = {{"vocab_size": len(words), "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}}
model = GPT2LMHeadModel(GPT2Config(**size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in DataLoader(rows, batch_size=3):
    optimizer.zero_grad()
    model(**batch).loss.backward()
    optimizer.step()
print("trained on")
"""


def test_a_script_is_shown_and_ended(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = server_of(pytestconfig).run(
        tmp_path, "tokens", "--rows", "3", "--json", "found.json", "train.py", together="watched"
    )
    assert done.status == 0, done.stderr
    assert "trained on" not in done.stdout + done.stderr, "it is ended after two updates"
    assert done.stdout.splitlines()[:5] == [
        "row 1, update 1",
        "  not taught     1    <s>",
        "  not taught     8  user  <|user|> what is the capital of france </s>",
        "  not taught     1  assistant  <|assistant|>",
        "  taught         4  assistant  it is paris </s>",
    ]
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["updates"], found["rows_seen"], found["without_label"], found["never_taught"]) == (2, 6, 0, [])
    assert found["taught"] == 2 * (4 + 4 + 2)
    assert [span["state"] for span in found["rows"][2]["spans"]][-2:] == ["taught", "padding"]


def test_rows_without_a_mask_and_without_the_templates_empty_block(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    text = SCRIPT.replace('"attention_mask": mask, ', "")
    text = text.replace(
        "\nsize = ", "\ntokenizer.chat_template = tokenizer.chat_template.replace('|>', '|> <a> </a>')\nsize = "
    )
    (tmp_path / "train.py").write_text(text)
    done = server_of(pytestconfig).run(tmp_path, "tokens", "--rows", "1", "train.py", together="watched")
    assert done.stdout.splitlines()[:6] == [
        "row 1, update 1",
        "  not taught     1    <s>",
        "  not taught     8  user  <|user|> what is the capital of france </s>",
        "  not taught     1  assistant  <|assistant|>",
        "  taught         4  assistant  it is paris </s>",
        "  padding        2    <pad> <pad>",
    ]


def test_what_has_no_tokens_is_one_sentence(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(3):\n    model(torch.randn(4, 2)).sum().backward()\n    optimizer.step()\n"
    )
    done = server_of(pytestconfig).run(tmp_path, "tokens", "train.py", together="watched")
    assert done.status == 2
    assert "harness: train.py trained no language model that harness tokens could follow" in done.stderr
    done = server_of(pytestconfig).run(tmp_path, "tokens", "absent.py", together="watched")
    assert (done.status, done.stderr) == (2, "harness: there is no script absent.py\n")


def test_a_script_that_crashes_says_so(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "train.py").write_text("raise ValueError('no data')\n")
    done = server_of(pytestconfig).run(tmp_path, "tokens", "train.py", together="watched")
    assert done.status == 2
    assert "ValueError: no data" in done.stderr
    (tmp_path / "train.py").write_text(SCRIPT.replace("    optimizer.step()", "    optimizer.step()\n    1 / 0"))
    done = server_of(pytestconfig).run(tmp_path, "tokens", "train.py", together="watched")
    assert done.status == 3
    assert "row 1, update 1" in done.stdout


@pytest.fixture
def model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), n_positions=32, n_embd=16, n_layer=1, n_head=2))


@pytest.fixture
def tokenizer() -> Callable[[], PreTrainedTokenizerFast]:
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return lambda: PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>")


def trained(model: Any, **given: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(**given).loss.backward()
    optimizer.step()


def test_a_test_asks_what_is_taught(model: Any, tokenizer: Callable[[], Any]) -> None:
    with taught() as seen:
        encode = tokenizer()
        ids = torch.tensor([encode("what is the capital of france it is paris </s>")["input_ids"]])
        labels = ids.clone()
        labels[:, :6] = -100
        trained(model, input_ids=ids, labels=labels)
    (row,) = seen.rows
    assert "paris </s>" in row.taught
    assert "capital" not in row.taught
    assert any("capital of france" in span.text for span in row.spans if span.state == "not taught")


def test_borders_of_packed_rows(model: Any, tokenizer: Callable[[], Any]) -> None:
    with taught() as seen:
        encode = tokenizer()
        ids = torch.tensor([encode("paris madrid </s> what is the </s>")["input_ids"]])
        positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3]])
        trained(model, input_ids=ids, position_ids=positions, labels=ids.masked_fill(positions == 0, -100))
    (row,) = seen.rows
    assert [(span.document, span.state, span.tokens) for span in row.spans] == [
        *((1, "not taught", 1), (1, "taught", 2)),
        *((2, "not taught", 1), (2, "taught", 3)),
    ]


class Works:
    """A Trainer, as far as it matters, which was made before the block."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.processing_class = model, tokenizer

    def train(self, ids: torch.Tensor) -> None:
        trained(self.model, input_ids=ids, labels=ids)


def test_the_tokenizer_of_a_trainer_that_was_made_before(model: Any) -> None:
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = Works(model, PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>"))
    ids = trainer.processing_class("it is paris </s>", return_tensors="pt")["input_ids"]
    with taught() as seen:
        trainer.train(ids)
    assert "paris" in seen.rows[0].taught


def test_a_row_ends_though_something_is_written_after_its_end(model: Any) -> None:
    with taught() as seen:
        made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<pad>"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        encode = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>")
        ends, cut = "what is the </s> of", "what is the capital of"
        for long in (ends, cut):
            given = encode([long, "it </s>"], padding=True, return_tensors="pt")
            labels = given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)
            trained(model, input_ids=given["input_ids"], attention_mask=given["attention_mask"], labels=labels)
    assert seen.filled == 1


def test_nothing_taught_is_said(model: Any) -> None:
    with pytest.raises(CannotTry, match="no model in the block got token labels"), taught():
        torch.optim.SGD(model.parameters(), lr=0.1).step()


def test_shares_that_matter_are_said() -> None:
    report = TaughtReport("train.py", 2, [], 10, 100, 20, 40, without_label=3, filled=2, never_taught=["</s> "])
    assert list(lines(report))[1:] == [
        "train.py: 10 rows in 2 updates, 100 tokens, 20% of them padding; 50% of the others carry a loss",
        "rows without any label: 3 of 10",
        "rows that fill their batch's width and do not end: 2 of 10 (cut off?)",
        "special tokens that never carry a loss: </s>",
    ]
