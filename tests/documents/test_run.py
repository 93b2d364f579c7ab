"""Documents of our own writing are run as printed, and judged by the versions that are installed."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path

import pytest

from harness import compat
from harness.documented_run.documents.collect import read_documents
from harness.documented_run.documents.process import started
from harness.documented_run.documents.replacements import REPLACEMENTS, replaced
from harness.documented_run.documents.run import run_documents
from harness.documented_run.documents.workspace import Place
from harness.documented_run.recipe import RECIPES
from harness.documented_run.record import BlockRecord, DocumentsRecord
from harness.errors import CannotTry
from harness.processes import Afterwards
from harness.report.documents import row_lines
from tests.documents.test_forms import cell, notebook
from tests.versions import installed

FIRST = """
```python
lengths = [len(text) for text in raw_datasets["test"]["sentence1"]]
len(lengths)
```
    1725
```python
from datasets import load_dataset

raw_datasets = load_dataset("glue", "mrpc")
sorted(raw_datasets["train"].column_names)
```
    ["idx", "label", "sentence1", "sentence2"]
```python
from transformers import AutoTokenizer

checkpoint = "bert-base-uncased"
tokenizer = AutoTokenizer.from_pretrained(checkpoint)
list(tokenizer("a b"))
```
    ['token_type_ids', 'attention_mask', 'input_ids']
```python
encoded = tokenizer(raw_datasets["train"]["sentence1"])
```
```python
import torch
from transformers import AutoModelForSequenceClassification, AdamW

model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)
optimizer = AdamW(model.parameters(), lr=5e-5)
```
```python
from transformers import Trainer, TrainingArguments

training_args = TrainingArguments("test", evaluation_strategy="epoch")
trainer = Trainer(
    model,
    training_args,
    eval_dataset=raw_datasets["validation"],
    tokenizer=tokenizer,
)
```
```python
import evaluate

metric = evaluate.load("glue", "mrpc")
metric.compute(predictions=[1, 0], references=[1, 1])["accuracy"]
```
    0.5
```python
from datasets import load_metric

metric = load_metric("glue", "mrpc")
metric.compute(predictions=[1, 0], references=[1, 1])["accuracy"]
```
    0.25
```python
open("absent.txt")
```
```python
training_function()
```
```python
unmade = absent_name
```
```python
unmade + 1
```
```python
import logging
from transformers.utils import logging as of_transformers
of_transformers.get_logger("transformers.x").warning("`a` is deprecated")
```
```python
of_transformers.get_logger("transformers.x").warning("`b` is deprecated")
```
```python
load_dataset("glue", "mrpc")["train"].num_rows + absent.attribute
```
```python
AutoTokenizer.from_pretrained("distilbert-base-uncased")
```
"""

SECOND = """
```python
lengths
```
```python
import os, sys
print("said", file=sys.stderr)
os.write(1, b"written past Python")
os._exit(3)
```
```python
1 + 1
```
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> DocumentsRecord:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "000.md").write_text(FIRST)
    (folder / "001.md").write_text(SECOND)
    return run_documents(read_documents(folder), RECIPES["tiny"]).record


@pytest.fixture
def blocks(record: DocumentsRecord) -> list[BlockRecord]:
    return [block for block in record.blocks if block.document == "000"]


@pytest.mark.nightly
def test_a_block_may_rely_on_one_further_down(blocks: list[BlockRecord]) -> None:
    assert (blocks[0].outcome, blocks[0].prints) == ("runs", None)


def test_the_short_name_is_refused_where_the_client_refuses_it(blocks: list[BlockRecord]) -> None:
    if installed("huggingface-hub>=1.16"):
        assert blocks[1].outcome == "fails"
        assert "HfUriError" in str(blocks[1].says)
        assert "nyu-mll/glue" in str(blocks[1].replacement)
    else:
        assert blocks[1].outcome == "runs"
    assert blocks[1].prints is None


def test_another_order_is_told(blocks: list[BlockRecord]) -> None:
    assert blocks[2].outcome == "runs"
    assert blocks[2].prints == "in another order: input_ids, token_type_ids, attention_mask"


@pytest.mark.parametrize(
    ("number", "fails", "error", "remedy"),
    [
        (4, "datasets>=4", "ValueError", "[:]"),
        (5, "transformers>=4.50", "ImportError: cannot import name 'AdamW'", "torch.optim"),
        (6, "transformers>=4.51", "TypeError", "eval_strategy="),
        (8, "datasets>=3", "ImportError: cannot import name 'load_metric'", "evaluate.load"),
    ],
)
def test_what_fails_and_its_remedy(number: int, fails: str, error: str, remedy: str, blocks: list[BlockRecord]) -> None:
    block = blocks[number - 1]
    if installed(fails):
        assert block.outcome == "fails"
        assert str(block.says).startswith(error)
        assert remedy in str(block.replacement)
        assert block.repaired
        assert block.source
    else:
        assert block.outcome in ("runs", "deprecated")
        assert block.replacement is None
        assert block.repaired is None


def test_a_deprecation_is_told(blocks: list[BlockRecord]) -> None:
    if installed("transformers<4.50"):
        assert blocks[4].outcome == "deprecated"
        assert "deprecated" in str(blocks[4].says)  # with accelerate 0.20 that of pkg_resources comes first
    assert blocks[6].outcome == "runs"


def test_several_remedies(blocks: list[BlockRecord]) -> None:
    if installed("transformers>=5"):
        assert blocks[5].replacement == "eval_strategy=, processing_class="


def test_an_output_that_differs_is_told_with_the_remedy_too(blocks: list[BlockRecord]) -> None:
    assert (blocks[6].shows_output, blocks[6].prints) == (True, None)
    assert (blocks[7].shows_output, blocks[7].prints) == (True, "0.5")


def test_an_error_without_a_remedy_names_no_path(blocks: list[BlockRecord]) -> None:
    assert (blocks[8].outcome, blocks[8].repaired) == ("fails", False)
    assert blocks[8].says == "FileNotFoundError: [Errno 2] No such file or directory: 'absent.txt'"
    assert blocks[8].replacement is None


def test_what_the_reader_is_to_write_is_not_applicable(blocks: list[BlockRecord]) -> None:
    assert blocks[9].outcome == "not applicable"
    assert blocks[9].says == "needs training_function, which no block defines"


def test_what_a_block_that_does_not_run_would_have_made(blocks: list[BlockRecord]) -> None:
    assert blocks[10].says == "needs absent_name, which no block defines"
    assert blocks[11].says == "needs unmade of block 11, which does not run"


def test_a_logged_deprecation_is_told_in_every_block(blocks: list[BlockRecord]) -> None:
    for block, name in zip(blocks[12:14], "ab", strict=True):
        assert block.outcome == "deprecated"
        assert str(block.says).endswith(f"`{name}` is deprecated")


def test_what_would_be_fetched_is_not_applicable(blocks: list[BlockRecord]) -> None:
    assert blocks[15].outcome == "not applicable"
    assert str(blocks[15].says).startswith("needs something that is fetched")


def test_documents_share_nothing_and_a_death_is_told(record: DocumentsRecord) -> None:
    needs, died, after = (block for block in record.blocks if block.document == "001")
    assert needs.says == "needs lengths, which no block defines"
    assert (died.outcome, died.says) == ("fails", "Died: the process ended with status 3")
    assert (after.outcome, after.says) == ("not applicable", "a block before it ended the process")


def test_nothing_of_the_documents_is_kept(record: DocumentsRecord) -> None:
    text = record.model_dump_json()
    assert "lr=5e-5" not in text
    assert str(Path.cwd()) not in text


def test_a_misspelt_name_is_an_error_of_its_own(tmp_path: Path) -> None:
    """Of a name that is given no value here nobody knows: it may be another section's."""
    (tmp_path / "a.md").write_text(
        "```python\nsettings = 1\n```\n\n```python\nprnt(settings)\n```\n\n```python\nsetings\n```\n\n"
        "```python\ntrainer\n```\n"
    )
    _, typo, own, absent = run_documents(read_documents(tmp_path), RECIPES["tiny"]).record.blocks
    assert (typo.outcome, typo.says) == ("fails", "NameError: name 'prnt' is not defined")
    assert own.outcome == "fails"
    assert (absent.outcome, absent.says) == ("not applicable", "needs trainer, which no block defines")


def test_a_block_that_takes_too_long_is_interrupted_and_others_go_on(tmp_path: Path) -> None:
    with started(Place(tmp_path, dict(os.environ), Afterwards(io.StringIO()))) as process:
        assert process.run("1 + 1", "first")["printed"] == "2"
        assert process.run("input()", "second")["error"]["type"] == "EOFError"
        long = "import time\nbefore = 1\ntime.sleep(60)"
        assert process.run(long, "third", timeout=1)["error"]["says"] == "no end after 1 s"
        assert process.run("before", "fourth")["printed"] == "1"
        assert not process.died


@pytest.mark.nightly
def test_a_block_that_cannot_be_interrupted_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.documented_run.documents.process.GRACE", 0.5)
    code = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open("pid", "w").write(str(other.pid))
while True: pass
"""
    with started(Place(tmp_path, dict(os.environ), Afterwards(io.StringIO()))) as process:
        done = process.run(code, "first", timeout=5)
        assert (done["error"]["type"], done["error"]["says"]) == ("TimedOut", "no end after 5 s")
        assert process.died
    other = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    until = time.monotonic() + 10
    while other.exists() and other.read_text().split()[2] != "Z":  # dead, though nobody has asked for it yet
        assert time.monotonic() < until


def test_a_folder_without_documents(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"no documents in .*: expected files"):
        read_documents(tmp_path)
    (tmp_path / "a.md").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(CannotTry, match="cannot be read"):
        read_documents(tmp_path)


@pytest.mark.parametrize(
    ("code", "new"),
    [
        ("from transformers import AdamW", "from torch.optim import AdamW"),
        (
            "from transformers import AdamW, get_scheduler",
            "from torch.optim import AdamW\nfrom transformers import get_scheduler",
        ),
        ('TrainingArguments("x", evaluation_strategy="epoch")', 'TrainingArguments("x", eval_strategy="epoch")'),
        ("Trainer(model, tokenizer=tokenizer)", "Trainer(model, processing_class=tokenizer)"),
        ("DataCollatorWithPadding(tokenizer=tokenizer)", "DataCollatorWithPadding(tokenizer=tokenizer)"),
        ("from datasets import load_metric", "from evaluate import load as load_metric"),
        ('tokenizer(raw_datasets["train"]["sentence1"])', 'tokenizer(raw_datasets["train"]["sentence1"][:])'),
        ('load_dataset("glue", "mrpc")', 'load_dataset("nyu-mll/glue", "mrpc")'),
        ("load_dataset('glue', 'mrpc')", "load_dataset(\"nyu-mll/glue\", 'mrpc')"),
        (
            "from transformers import (\n    AdamW,\n    get_scheduler,\n)",
            "from torch.optim import AdamW\nfrom transformers import get_scheduler",
        ),
        (
            "from datasets import load_dataset, load_metric",
            "from evaluate import load as load_metric\nfrom datasets import load_dataset",
        ),
        (
            "DataCollatorWithPadding(padding=True, tokenizer=tok)",
            "DataCollatorWithPadding(padding=True, tokenizer=tok)",
        ),
        ("Trainer(m, f(x), tokenizer=tok)", "Trainer(m, f(x), processing_class=tok)"),
        (
            "def f():\n    from transformers import AdamW, get_scheduler  # both\n    return 1",
            "def f():\n    from torch.optim import AdamW\n    from transformers import get_scheduler  # both\n"
            "    return 1",
        ),
        (
            "from transformers import (\n    AdamW,  # gone\n    get_scheduler,\n)  # all",
            "from torch.optim import AdamW\nfrom transformers import get_scheduler  # all",
        ),
        ("from transformers import AdamWeightDecay", "from transformers import AdamWeightDecay"),
        ("# from transformers import AdamW", "# from transformers import AdamW"),
    ],
)
def test_replacements(code: str, new: str) -> None:
    assert replaced(code)[0] == new
    assert len(replaced(code)[1]) == (code != new)


def test_each_replacement_has_a_source() -> None:
    assert all("#" in each.source and each.says for each in REPLACEMENTS)


def test_the_fact_about_the_short_name_is_the_block_s(blocks: list[BlockRecord]) -> None:
    assert (blocks[1].outcome == "fails") == (compat.refused_by_the_hub("glue") is not None)


def test_the_record_is_json(record: DocumentsRecord) -> None:
    assert json.loads(record.model_dump_json(by_alias=True))["schema"] == 1


def test_copies_are_executed_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    first = f"```py\nx = 1  # {{}}\nopen({str(count)!r}, 'a').write('x')\n```\n"
    second = f"```py\nprint(x)\nopen({str(count)!r}, 'a').write('y')\n```\n```py out\n{{}}\n```\n"
    (tmp_path / "a.md").write_text(first.format("one") + second.format("1\n1"))
    (tmp_path / "b.mdx").write_text(first.format("eins") + second.format("2\n1"))
    (tmp_path / "c.md").write_text(first.format("un") + "```py\nx = 2\n```\n" + second.format("2\n1"))
    record = run_documents(read_documents(tmp_path), RECIPES["tiny"]).record
    # c's last block is not the others': it is executed after all that it relies on, which the first block is.
    assert count.read_text() == "xyxy"
    places = [(f"{each.document}:{each.number}", each.same_as, each.prints) for each in record.blocks]
    assert places == [
        ("a:1", None, None),
        ("a:2", None, None),
        ("b:1", "a:1", None),
        ("b:2", "a:2", "1\n1"),
        ("c:1", "a:1", None),
        ("c:2", None, None),
        ("c:3", None, None),
    ]
    assert {each.outcome for each in record.blocks} == {"runs"}
    assert [each.seconds is None for each in record.blocks] == [False, False, True, True, True, False, False]
    assert set(record.seconds) == {"a.md", "b.mdx", "c.md"}
    assert not record.interrupted
    (row,) = [line for line in row_lines(record) if line.startswith("    also") and "c:1" in line]
    assert row == "    also   b:1, c:1"


SECRETS = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "MY_OWN",
)

FORMS = """
{#if fw === 'pt'}
```py
import os, tempfile
from pathlib import Path

here = Path.cwd()
open("left", "w").close()
[name for name in (SECRETS) if name in os.environ]
```
    []
{:else}
```py
import a_library_that_is_not_here.layers
```
```py
raise ImportError("Called a Tensorflow-specific function but Tensorflow is not installed.")
```
{/if}
```py
(Path.home().parent == here.parent, Path(tempfile.gettempdir()).parent == here.parent, "/" in str(here))
```
    (True, True, True)
```py
1 / 0
```
```py runnable:one
# pytest-decorator: unittest.expectedFailure
# pytest-decorator: os.path.absent
first = 1
```
```py runnable:two
# pytest-decorator: skipping.skipped
of_two = 1
```
```py runnable:two:2
of_two
```
```py runnable:three
here
```
```py runnable:four
value = [0]  # doc-builder: hide
```
```py runnable:four:2
value.append(1)
value
```
    [0, 1]
""".replace("(SECRETS)", str(SECRETS))

NOTEBOOK = notebook(
    cell("import os; os.path.exists('left')", [{"output_type": "execute_result", "data": {"text/plain": "False"}}]),
    cell("1 / 0", [{"output_type": "error", "ename": "ZeroDivisionError", "evalue": "", "traceback": []}]),
    cell("int('1')", [{"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}]),
    cell(
        "!pip install nothing\nprint('said')\n2", [{"output_type": "stream", "name": "stdout", "text": ["said\n", "3"]}]
    ),
    cell("import time\ntime.sleep(60)"),
    cell("four = 4"),
)


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> DocumentsRecord:
    folder = tmp_path_factory.mktemp("forms")
    (folder / "a.mdx").write_text(FORMS)
    (folder / "within").mkdir()
    (folder / "within" / "b.ipynb").write_text(NOTEBOOK)
    with pytest.MonkeyPatch.context() as patch:
        for name in SECRETS:
            patch.setenv(name, "secret")
        (folder / "skipping.py").write_text("import unittest\nskipped = unittest.skip('a reason')\n")
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        return run_documents(read_documents(folder), RECIPES["tiny"], timeout=5).record


def test_blocks_see_no_secrets_and_their_own_folder(forms: DocumentsRecord) -> None:
    first, where = (each for each in forms.blocks if each.document == "a" and each.number in (1, 4))
    for block in (first, where):
        assert (block.outcome, block.shows_output, block.prints) == ("runs", True, None)


def test_a_library_that_is_not_installed(forms: DocumentsRecord) -> None:
    blocks = [each for each in forms.blocks if each.document == "a" and each.number in (2, 3)]
    assert [each.outcome for each in blocks] == ["not applicable"] * 2
    assert [each.says for each in blocks] == [
        f"needs {name}, which is not installed" for name in ("a_library_that_is_not_here", "tensorflow")
    ]


def test_an_error_that_the_document_does_not_show(forms: DocumentsRecord) -> None:
    (block,) = [each for each in forms.blocks if each.document == "a" and each.number == 5]
    assert (block.outcome, block.says) == ("fails", "ZeroDivisionError: division by zero")


def test_blocks_that_doc_builder_runs(forms: DocumentsRecord) -> None:
    one, skipped, after, apart, hidden, continued = sorted(
        (each for each in forms.blocks if each.document == "a" and each.number > 5), key=lambda each: each.number
    )
    assert (one.outcome, one.says) == ("fails", "AttributeError: module 'posixpath' has no attribute 'absent'")
    assert (skipped.outcome, skipped.says) == ("not applicable", "skipped by its decorator: a reason")
    assert after.says == "needs of_two of block 7, which does not run"
    assert (apart.outcome, apart.says) == (
        "not applicable",
        "needs here, which no block defines",
    )  # a namespace of its own
    assert (hidden.outcome, continued.outcome, continued.prints) == ("runs", "runs", None)


def test_cells_and_their_stored_outputs(forms: DocumentsRecord) -> None:
    alone, raises, does_not, mixed, hangs, after = (each for each in forms.blocks if each.document == "b")
    assert (alone.outcome, alone.shows_output, alone.prints) == ("runs", True, None)
    assert (raises.outcome, raises.prints, raises.cell) == ("runs", None, 2)
    assert (does_not.outcome, does_not.prints) == ("runs", "no ValueError")
    assert (mixed.outcome, mixed.prints) == ("runs", "2")
    assert (hangs.outcome, hangs.says, hangs.repaired) == ("fails", "TimedOut: no end after 5 s", False)
    assert after.outcome == "runs"
