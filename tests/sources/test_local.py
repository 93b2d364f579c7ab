"""Local folders: every layout gives Hugging Face's features; every broken file is named."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Value, load_from_disk

from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.sources import builtin, find_checkpoint, load_raw_datasets, loading, local
from harness.documented_run.stages import Run
from harness.documented_run.stages.checkpoint import load_tokenizer, model_config
from harness.documented_run.stages.model import created
from harness.errors import CannotTry

HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
ROWS = [f'{i % 2}\t{i}\t{i + 100}\tThe "first" of {i} .\tThe second of {i} .' for i in range(6)]


def recipe(folder: Path) -> Recipe:
    return Recipe(data=str(folder))


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def tsv(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *rows]) + "\n"


@pytest.fixture
def glue(tmp_path: Path) -> Path:
    return write(tmp_path, train__tsv=tsv(*ROWS[:4]), dev__tsv=tsv(ROWS[4]), test__tsv=tsv(ROWS[5]))


def assert_features(loaded: DatasetDict) -> None:
    for rows in loaded.values():
        assert rows.features == {
            "sentence1": Value("string"),
            "sentence2": Value("string"),
            "label": ClassLabel(names=["not_equivalent", "equivalent"]),
            "idx": Value("int32"),
        }


def test_glue_tsv(glue: Path) -> None:
    loaded = load_raw_datasets(recipe(glue))
    assert_features(loaded)
    assert {name: len(rows) for name, rows in loaded.items()} == {"train": 4, "validation": 1, "test": 1}
    assert loaded["train"][1] == {
        "sentence1": 'The "first" of 1 .', "sentence2": "The second of 1 .", "label": 1, "idx": 1
    }  # fmt: skip


def test_windows_line_ends_and_unicode_breaks(glue: Path) -> None:
    write(glue, dev__tsv=f"\ufeff{HEADER}\r\n1\t1\t2\tone\u2028line\ttwo\x85lines\r\n")
    assert load_raw_datasets(recipe(glue))["validation"][0]["sentence1"] == "one\u2028line"


def test_unlabelled_test_file(glue: Path) -> None:
    write(glue, test__tsv=tsv("0\t5\t6\ta\tb", "1\t7\t8\tc\td", header="index\t#1 ID\t#2 ID\t#1 String\t#2 String"))
    assert list(load_raw_datasets(recipe(glue))["test"]["label"]) == [-1, -1]


@pytest.fixture
def sst2(tmp_path: Path) -> Path:
    rows = [f"a film of {number} \t{number % 2}" for number in range(6)]
    return write(
        tmp_path,
        train__tsv=tsv(*rows[:4], header="sentence\tlabel"),
        dev__tsv=tsv(*rows[4:], header="sentence\tlabel"),
        test__tsv=tsv("0\tuneasy mishmash of styles .", "1\tvery good .", header="index\tsentence"),
    )


def test_single_sentences(sst2: Path) -> None:
    loaded = load_raw_datasets(RECIPES["sst2"].with_(data=sst2))
    assert loaded["train"].features == {
        "sentence": Value("string"), "label": ClassLabel(names=["negative", "positive"]), "idx": Value("int32")
    }  # fmt: skip
    assert loaded["train"][1] == {"sentence": "a film of 1 ", "label": 1, "idx": 1}
    assert loaded["test"][0] == {"sentence": "uneasy mishmash of styles .", "label": -1, "idx": 0}


def test_broken_single_sentences(sst2: Path) -> None:
    write(sst2, dev__tsv=tsv("a film \t2", header="sentence\tlabel"))
    with pytest.raises(CannotTry, match=r"dev\.tsv:2 has the label '2'; expected 0 or 1"):
        load_raw_datasets(RECIPES["sst2"].with_(data=sst2))
    write(sst2, dev__tsv=tsv("a film", header="sentence\tlabel"))
    with pytest.raises(CannotTry, match=r"dev\.tsv:2 has 1 tab-separated fields; expected 2"):
        load_raw_datasets(RECIPES["sst2"].with_(data=sst2))


def test_single_sentences_for_a_recipe_of_pairs(sst2: Path) -> None:
    refused(sst2, r"the train split has no column 'sentence1'; found sentence, label, idx")


def test_original_corpus_has_hugging_faces_idx(tmp_path: Path) -> None:
    write(
        tmp_path,
        msr_paraphrase_train__txt="\ufeff" + tsv(*ROWS[:5]),
        msr_paraphrase_test__txt=tsv(ROWS[5]),
        dev_ids__tsv="1\t101\n3\t103\n",
    )
    loaded = load_raw_datasets(recipe(tmp_path))
    assert_features(loaded)
    assert list(loaded["train"]["idx"]) == [0, 2, 4]
    assert list(loaded["validation"]["idx"]) == [1, 3]


def _saved(folder: Path, rows: DatasetDict) -> None:
    rows.save_to_disk(str(folder))


def _parquet(folder: Path, rows: DatasetDict) -> None:
    for name, each in rows.items():
        each.to_parquet(folder / f"{name}-00000-of-00001.parquet")


def _jsonl(folder: Path, rows: DatasetDict) -> None:
    for name, each in rows.items():
        each.to_json(folder / f"{name}.jsonl")


def _csv(folder: Path, rows: DatasetDict) -> None:
    for name, each in rows.items():
        each.to_csv(folder / f"{name}.csv")


@pytest.mark.parametrize("save", [_saved, _parquet, _jsonl, _csv])
@pytest.mark.parametrize("with_idx", [True, False])
def test_what_datasets_writes(
    save: Callable[[Path, DatasetDict], None], with_idx: bool, small_data: Path, tmp_path: Path
) -> None:
    original = load_from_disk(str(small_data))
    save(tmp_path, original if with_idx else original.remove_columns("idx"))
    loaded = load_raw_datasets(recipe(tmp_path))
    assert_features(loaded)
    for name, rows in original.items():
        assert list(loaded[name]["sentence2"]) == list(rows["sentence2"])
        assert list(loaded[name]["label"]) == list(rows["label"])
        assert list(loaded[name]["idx"]) == (list(rows["idx"]) if with_idx else list(range(len(rows))))


def refused(folder: Path, message: str) -> None:
    with pytest.raises(CannotTry, match=message):
        load_raw_datasets(recipe(folder))


def test_missing_folder(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "data folder .*nowhere not found")


def test_empty_folder(tmp_path: Path) -> None:
    refused(tmp_path, r"is empty; expected train\.tsv, dev\.tsv, test\.tsv; or msr_paraphrase_train")


def test_unknown_layout(tmp_path: Path) -> None:
    refused(write(tmp_path, notes__md="hello"), "has no layout that can be read")


@pytest.mark.parametrize("name", ["train.tsv", "dev.tsv", "test.tsv"])
def test_missing_split(glue: Path, name: str) -> None:
    (glue / name).unlink()
    refused(glue, f"has no {name}, the (train|validation|test) split")


@pytest.mark.parametrize("name", ["msr_paraphrase_test.txt", "dev_ids.tsv"])
def test_original_corpus_lacks_a_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, msr_paraphrase_train__txt=tsv(*ROWS), msr_paraphrase_test__txt=tsv(*ROWS), dev_ids__tsv="1\t101\n")
    (tmp_path / name).unlink()
    refused(tmp_path, f"has msr_paraphrase_train.txt but no {name}")


def test_dev_ids_of_another_corpus(tmp_path: Path) -> None:
    write(tmp_path, msr_paraphrase_train__txt=tsv(*ROWS), msr_paraphrase_test__txt=tsv(*ROWS), dev_ids__tsv="1\t9\n")
    refused(tmp_path, "names 1 rows, but 0 of them are in msr_paraphrase_train.txt")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\t2\t3\tonly one sentence", r"train\.tsv:3 has 4 tab-separated fields; expected 5"),
        ("1\t2\t3\ta\tb\tc", r"train\.tsv:3 has 6 tab-separated fields; expected 5"),
        ("2\t2\t3\ta\tb", r"train\.tsv:3 has the label '2'; expected 0 or 1"),
        ("\t2\t3\ta\tb", r"train\.tsv:3 has the label ''; expected 0 or 1"),
    ],
)
def test_broken_line_is_named(glue: Path, line: str, message: str) -> None:
    refused(write(glue, train__tsv=tsv(ROWS[0], line, ROWS[1])), message)


def test_wrong_encoding_is_named(glue: Path) -> None:
    refused(write(glue, train__tsv=tsv(ROWS[0], "1\t2\t3\tcaf\xe9\tb").encode("latin-1")), r"train\.tsv:3 is not UTF-8")


@pytest.mark.parametrize("content", ["", "a,b,c\n1,2,3\n", "label\ttext\n"])
def test_wrong_header(glue: Path, content: str) -> None:
    refused(write(glue, train__tsv=content), r"train\.tsv:1 has the header .*; expected Quality")


def test_header_only(glue: Path) -> None:
    refused(write(glue, dev__tsv=tsv()), r"dev\.tsv has no rows below its header")


def saved(folder: Path, **columns: list[object]) -> Path:
    common = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "label": [0, 1]} | columns
    rows = Dataset.from_dict({name: values for name, values in common.items() if values})
    DatasetDict({"train": rows, "validation": rows, "test": rows}).save_to_disk(str(folder))
    return folder


def test_missing_column(tmp_path: Path) -> None:
    refused(saved(tmp_path, sentence2=[]), "the train split has no column 'sentence2'; found sentence1, label, idx")


@pytest.mark.parametrize("label", [2, -1, None])
def test_label_that_is_none_of_the_recipes(tmp_path: Path, label: object) -> None:
    refused(saved(tmp_path, label=[0, label]), f"row 1 of the train split has the label {label}; expected one of .* 2")


def test_sentence_that_pandas_takes_for_nothing(tmp_path: Path) -> None:
    for split in local.SPLITS:
        write(tmp_path, **{f"{split}__csv": "sentence1,sentence2,label\nNone,NA,1\n"})
    assert load_raw_datasets(recipe(tmp_path))["train"][0]["sentence1"] == "None"


def test_saved_with_a_format_and_other_files_beside(tmp_path: Path, small_data: Path) -> None:
    rows = load_from_disk(str(small_data))
    _jsonl(tmp_path, rows)
    write(tmp_path, train_results__jsonl='{"loss": 1}\n')
    assert len(load_raw_datasets(recipe(tmp_path))["train"]) == len(rows["train"])
    rows.set_format("torch")
    rows.save_to_disk(str(tmp_path / "saved"))
    assert_features(load_raw_datasets(recipe(tmp_path / "saved")))


def test_labels_may_be_the_recipes_names(tmp_path: Path) -> None:
    names = {"train": ["good", "bad"], "validation": ["good", "good"], "test": ["bad", "bad"]}
    for split, labels in names.items():
        rows = [{"text": f"{split} {row}", "stars": label} for row, label in enumerate(labels)]
        Dataset.from_list(rows).to_csv(tmp_path / f"{split}.csv")
    reviews = recipe(tmp_path).with_(text_columns=("text",), label_column="stars", label_names=("bad", "good"))
    loaded = load_raw_datasets(reviews)
    assert {split: list(rows["stars"]) for split, rows in loaded.items()} == {
        "train": [1, 0], "validation": [1, 1], "test": [0, 0]
    }  # fmt: skip
    assert loaded["train"].features["stars"] == ClassLabel(names=["bad", "good"])
    with pytest.raises(
        CannotTry, match=r"row 0 of the train split has the label 'good'; .* one of its label_names, no, yes"
    ):
        load_raw_datasets(reviews.with_(label_names=("no", "yes")))


def test_a_list_of_labels_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        Dataset.from_list([{"text": split, "stars": [0, 1]}]).to_parquet(tmp_path / f"{split}.parquet")
    with pytest.raises(CannotTry, match=r"row 0 of the train split has the label '?\[0, 1\]"):
        load_raw_datasets(recipe(tmp_path).with_(text_columns=("text",), label_column="stars"))


def test_labels_of_other_names(tmp_path: Path) -> None:
    rows = Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "label": [0]})
    rows = rows.cast_column("label", ClassLabel(names=["equivalent", "not_equivalent"]))
    DatasetDict({"train": rows, "validation": rows, "test": rows}).save_to_disk(str(tmp_path))
    refused(tmp_path, "calls its labels equivalent, not_equivalent; the recipe expects not_equivalent, equivalent")


def test_missing_split_of_a_saved_dataset(tmp_path: Path) -> None:
    rows = Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "label": [0]})
    DatasetDict({"train": rows}).save_to_disk(str(tmp_path))
    refused(tmp_path, "has no validation split; found train")


def test_broken_jsonl(tmp_path: Path) -> None:
    refused(write(tmp_path, train__jsonl='{"sentence1": "a"\n'), "the jsonl files could not be read")


def test_broken_saved_dataset(tmp_path: Path) -> None:
    refused(write(tmp_path, dataset_dict__json="{"), "could not be read")


def test_sentences_that_are_numbers(tmp_path: Path) -> None:
    rows = load_raw_datasets(recipe(saved(tmp_path, sentence1=[1, 2])))
    assert rows["train"][0]["sentence1"] == "1"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "has no configuration: expected config.json"),
        (["config.json"], r"has no tokenizer: expected tokenizer\.json or vocab\.txt or"),
        (["config.json", "vocab.txt"], r"has no weights: expected model\*\.safetensors"),
    ],
)
def test_incomplete_checkpoint(tmp_path: Path, files: list[str], message: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(CannotTry, match=message):
        find_checkpoint(Recipe(checkpoint=str(tmp_path)), weights=True)


def test_tokenizer_alone_is_enough_without_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "vocab.txt").touch()
    assert find_checkpoint(Recipe(checkpoint=str(tmp_path)), weights=False) == str(tmp_path)


def test_missing_checkpoint_folder() -> None:
    with pytest.raises(CannotTry, match=r"checkpoint folder \./nowhere not found"):
        find_checkpoint(Recipe(checkpoint="./nowhere"), weights=True)


def test_real_corpus(mrpc: Path) -> None:
    """Facts of MRPC: rows, positive rows, and the same sentences from both layouts."""
    loaded = load_raw_datasets(recipe(mrpc))
    assert {name: len(rows) for name, rows in loaded.items()} == {"train": 3668, "validation": 408, "test": 1725}
    assert {name: sum(rows["label"]) for name, rows in loaded.items()} == {
        "train": 2474, "validation": 279, "test": 1147
    }  # fmt: skip
    for split, name in local.TSV_FILES.items():
        lines = local._lines(mrpc / name, 2)
        assert [line.sentences[1] for line in lines] == list(loaded[split]["sentence2"])
        assert [line.label for line in lines] == list(loaded[split]["label"])


@pytest.mark.parametrize(
    "header",
    [
        HEADER.replace("#2 String", "Other"),
        "Quality\t#2 ID\t#1 ID\t#1 String\t#2 String",
        "index\tid\tother\tfirst\tsecond",
    ],
)
def test_a_header_is_glues_own_in_all_its_names(glue: Path, header: str) -> None:
    write(glue, train__tsv=tsv(*ROWS[:4], header=header))
    with pytest.raises(
        CannotTry, match=r"train\.tsv:1 has the header .*; expected Quality .*#2 String.* in this order"
    ):
        load_raw_datasets(recipe(glue))


def rows_of(labels: list[object]) -> str:
    return "\n".join(json.dumps({"sentence1": "a", "sentence2": "b", "label": label}) for label in labels) + "\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train__tsv": b"\x00" * 80_000}, r"train\.tsv:1 has the header"),
        ({"train__tsv": tsv(*ROWS[:4]).replace("\n", "\r") * 500}, r"train\.tsv:1 has the header"),
        (
            {"train__tsv": tsv("x" * 50_000 + "\t1\t2\ta\tb")},
            r"train\.tsv:2 has the label 'xxx.*\.\.\.; expected 0 or 1",
        ),
        ({"dev__tsv": None}, r"has a dev\.tsv that is not a file, the validation split"),
    ],
)
def test_a_message_never_quotes_a_whole_file(glue: Path, files: dict[str, str | bytes | None], message: str) -> None:
    for name, content in files.items():
        (glue / name.replace("__", ".")).unlink()
        if content is None:
            (glue / name.replace("__", ".")).mkdir()
        else:
            write(glue, **{name: content})
    with pytest.raises(CannotTry, match=message) as refused:
        load_raw_datasets(recipe(glue))
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize(
    ("name", "train", "message"),
    [
        ("jsonl", "", r"train\.jsonl is empty"),
        ("jsonl", rows_of([0, 1, 10**30]), r"row 2 of the train split has the label 1e\+30; expected one of .* 0, 1"),
        ("jsonl", rows_of([0, 1, None]), "row 2 of the train split has the label None"),
        ("jsonl", rows_of([0, 1, 0.5]), "labels that are floats; regression"),
        ("csv", "sentence1,sentence2,label\na,b,1\nc,d,\n", "row 1 of the train split has the label ''"),
        ("jsonl", '{"sentence1": "a"' + "x" * 50_000, "could not be read"),
    ],
)
def test_the_row_that_is_odd_is_named(tmp_path: Path, name: str, train: str, message: str) -> None:
    good = rows_of([0, 1]) if name == "jsonl" else "sentence1,sentence2,label\na,b,1\n"
    write(tmp_path, **{f"train__{name}": train, f"validation__{name}": good, f"test__{name}": good})
    with pytest.raises(CannotTry, match=message) as refused:
        load_raw_datasets(recipe(tmp_path))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", "[]"), ("tokenizer.json", "null"), ("config.json", "[" * 100_000), ("tokenizer_config.json", "{")],
)
def test_a_file_of_a_checkpoint_that_is_no_json_object(tmp_path: Path, name: str, content: str) -> None:
    shutil.copytree(builtin.CHECKPOINT, tmp_path / "own")
    (tmp_path / "own" / name).write_text(content)
    with pytest.raises(CannotTry, match=rf"{name} (holds|cannot be read as JSON)") as refused:
        find_checkpoint(Recipe(checkpoint=str(tmp_path / "own")), weights=True)
    assert len(str(refused.value)) < 400


def test_code_that_comes_with_a_checkpoint_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(builtin.CHECKPOINT, tmp_path / "own")
    (tmp_path / "own" / "evil.py").write_text(
        f"open({str(tmp_path / 'executed')!r}, 'w')\n"
        "from transformers import PretrainedConfig\nclass Evil(PretrainedConfig):\n    model_type = 'evil'\n"
    )
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoTokenizer": ["evil.Evil", None]}}
    (tmp_path / "own" / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    run = Run(Recipe(checkpoint=str(tmp_path / "own")))
    load_tokenizer(run.recipe)  # which needs none
    for load in (lambda run: model_config(run.recipe), created):
        with pytest.raises(CannotTry, match="code that comes with the checkpoint, which is never executed"):
            load(run)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("x" * (local.LONGEST_TEXT + 1), "1000001 characters"), ("a\0b", "a NUL byte"), (None, "nothing")],
)
def test_a_text_that_is_none_is_named(tmp_path: Path, text: str | None, wrong: str) -> None:
    rows = [{"sentence1": "a", "sentence2": "b", "label": 0}, {"sentence1": "a", "sentence2": text, "label": 1}]
    good = rows_of([0, 1])
    write(tmp_path, train__jsonl="\n".join(map(json.dumps, rows)) + "\n", validation__jsonl=good, test__jsonl=good)
    with pytest.raises(CannotTry, match=f"row 1 of the train split has {wrong} in sentence2; expected a text"):
        load_raw_datasets(recipe(tmp_path))


def test_a_pickle_is_told_without_the_advice_to_execute_it() -> None:
    with (
        pytest.raises(CannotTry, match="its pickle is damaged or contains more than tensors") as refused,
        loading("it"),
    ):
        raise pickle.UnpicklingError("Weights only load failed. Re-running with `weights_only` set to `False` ...")
    assert "False" not in str(refused.value)
