"""Data and weights from a local folder.

Data: GLUE's TSV layout of MRPC or, for one sentence a row, of SST-2 (train.tsv, dev.tsv, test.tsv), MRPC's original
files (msr_paraphrase_train.txt, msr_paraphrase_test.txt, dev_ids.tsv), or what ``datasets`` writes (save_to_disk,
parquet, jsonl, json, csv).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.documented_run.recipe import REGRESSION, Recipe
from harness.documented_run.sources.features import raw_features
from harness.errors import CannotTry
from harness.findings import first_line, shortened

if TYPE_CHECKING:
    from datasets import DatasetDict

SPLITS = ("train", "validation", "test")
TSV_FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}
ORIGINAL_TRAIN, ORIGINAL_TEST, DEV_IDS = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"
GLUE_HEADERS = tuple([first, "#1 ID", "#2 ID", "#1 String", "#2 String"] for first in ("Quality", "index"))
"""Headers of MRPC, with labels and without."""
SENTENCE_HEADERS = (["sentence", "label"], ["index", "sentence"])
"""Headers of SST-2, with labels and without."""
READERS = {"parquet": "parquet", "jsonl": "json", "json": "json", "csv": "csv"}
TOKENIZER_FILES = ["tokenizer.json", "vocab.txt", "vocab.json", "*.model"]
JSON_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
LONGEST_TEXT = 1_000_000
"""Characters of a text: one line of 10 MB keeps a tokenizer busy for minutes, and is a file that broke."""
UNLABELLED = -1
"""Hugging Face's label of a row without one; GLUE publishes some test sets so."""


class _Line(NamedTuple):
    """One row of a TSV file; ``ids`` are the corpus's own numbers of the two sentences."""

    label: int
    ids: tuple[str, ...]
    sentences: tuple[str, ...]


def raw_datasets(recipe: Recipe, folder: Path) -> DatasetDict:
    """The corpus in ``folder``, in whichever layout is found there.

    Rows of the original corpus get Hugging Face's ``idx``, the row's running number in the original file; where only
    the TSV files are there, the running number in the file itself.

    Raises:
        CannotTry: the folder is missing or empty, lacks a split or a column, or a line cannot be read.
    """
    if not folder.is_dir():
        raise CannotTry(f"data folder {folder} not found")
    if not any(folder.iterdir()):
        raise CannotTry(f"data folder {folder} is empty; expected {_layouts()}")
    if (folder / ORIGINAL_TRAIN).is_file():
        return _from_rows(recipe, _original(folder, recipe.num_labels), folder)
    if any((folder / name).is_file() for name in TSV_FILES.values()):
        for split, name in TSV_FILES.items():
            if not (folder / name).is_file():
                has = f"has a {name} that is not a file" if (folder / name).exists() else f"has no {name}"
                raise CannotTry(f"data folder {folder} {has}, the {split} split; expected {_layouts()}")
        return _from_rows(
            recipe,
            {split: list(enumerate(_lines(folder / name, recipe.num_labels))) for split, name in TSV_FILES.items()},
            folder,
        )
    return as_raw_features(recipe, _datasets_files(folder), where=f"data folder {folder}")


def checkpoint(folder: Path, *, weights: bool) -> Path:
    """The folder, once it has what ``from_pretrained`` needs.

    Raises:
        CannotTry: it has no configuration, no tokenizer, or (with ``weights``) no weights; or its JSON is none.
    """
    needs = {"configuration": ["config.json"], "tokenizer": TOKENIZER_FILES}
    if weights:
        needs["weights"] = ["model*.safetensors", "pytorch_model*.bin"]
    for what, names in needs.items():
        if not any(any(folder.glob(name)) for name in names):
            raise CannotTry(
                f"checkpoint folder {folder} has no {what}: expected {' or '.join(names)}; save one there with "
                "save_pretrained"
            )
    for name in JSON_FILES:
        if (folder / name).is_file():
            _check_object(folder / name)
    return folder


def _check_object(path: Path) -> None:
    """Libraries fall over a file that is JSON, but no object, as if they were broken themselves."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CannotTry(f"{path} cannot be read as JSON ({first_line(error)}); save the checkpoint again") from error
    if not isinstance(content, dict):
        raise CannotTry(
            f"{path} holds {shortened(repr(content), 40)}; expected a JSON object; save the checkpoint again"
        )


def _layouts() -> str:
    return (
        f"{', '.join(TSV_FILES.values())}; or {ORIGINAL_TRAIN}, {ORIGINAL_TEST}, {DEV_IDS}; or a save_to_disk folder; "
        f"or {'/'.join(SPLITS)} files of {', '.join(READERS)}"
    )


def _text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The file's lines with their numbers. Only a newline ends a line: sentences may hold other Unicode breaks."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CannotTry(f"{path} cannot be read ({error.strerror})") from error
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise CannotTry(
                f"{path}:{number} is not UTF-8 ({error.reason} at byte {error.start}); convert the file"
            ) from error
        if text:
            yield number, text


def _lines(path: Path, num_labels: int) -> list[_Line]:
    """The rows of a TSV file of GLUE's, which quotes nothing: MRPC's, a label first, or SST-2's, a sentence first.

    Sentences are kept as they are, SST-2's with a space at the end. The test file may have no labels.
    """
    lines = _text_lines(path)
    header = next(lines, (1, ""))[1].split("\t")
    pairs = header in GLUE_HEADERS
    if not pairs and header not in SENTENCE_HEADERS:
        raise CannotTry(
            f"{path}:1 has the header {shortened(str(header), 200)}; expected Quality (or index), #1 ID, #2 ID, "
            "#1 String, #2 String, or sentence, label, in this order and with tabs between"
        )
    rows, allowed = [], set(map(str, range(num_labels)))
    for number, text in lines:
        values = text.split("\t")
        if len(values) != len(header):
            raise CannotTry(f"{path}:{number} has {len(values)} tab-separated fields; expected {len(header)}")
        label = str(UNLABELLED) if header[0] == "index" else values[0] if pairs else values[1]
        if header[0] != "index" and label not in allowed:
            expected = "0 or 1" if num_labels == 2 else f"a whole number from 0 to {num_labels - 1}"
            raise CannotTry(f"{path}:{number} has the label {shortened(repr(label), 40)}; expected {expected}")
        ids = tuple(values[1:3]) if pairs else ()
        sentences = values[3:] if pairs else [values[header.index("sentence")]]
        rows.append(_Line(int(label), ids, tuple(sentences)))
    if not rows:
        raise CannotTry(f"{path} has no rows below its header")
    return rows


def _original(folder: Path, num_labels: int) -> dict[str, list[tuple[int, _Line]]]:
    """The splits of the original corpus: dev_ids.tsv names the training rows that became the validation set."""
    for name in (ORIGINAL_TEST, DEV_IDS):
        if not (folder / name).is_file():
            raise CannotTry(f"data folder {folder} has {ORIGINAL_TRAIN} but no {name}; expected {_layouts()}")
    dev_ids = set()
    for number, text in _text_lines(folder / DEV_IDS):
        ids = tuple(text.split("\t"))
        if len(ids) != 2:
            raise CannotTry(f"{folder / DEV_IDS}:{number} has {len(ids)} tab-separated fields; expected 2")
        dev_ids.add(ids)
    numbered = list(enumerate(_lines(folder / ORIGINAL_TRAIN, num_labels)))
    validation = [(idx, row) for idx, row in numbered if row.ids in dev_ids]
    if len(validation) != len(dev_ids):
        raise CannotTry(
            f"{folder / DEV_IDS} names {len(dev_ids)} rows, but {len(validation)} of them are in {ORIGINAL_TRAIN}; the "
            "two files do not belong together"
        )
    return {
        "train": [(idx, row) for idx, row in numbered if row.ids not in dev_ids],
        "validation": validation,
        "test": list(enumerate(_lines(folder / ORIGINAL_TEST, num_labels))),
    }


def _from_rows(recipe: Recipe, splits: dict[str, list[tuple[int, _Line]]], folder: Path) -> DatasetDict:
    from datasets import Dataset, DatasetDict

    columns = {}
    for name, rows in splits.items():
        texts = list(zip(*(row.sentences for _, row in rows), strict=True))
        names = ("sentence1", "sentence2") if len(texts) == 2 else ("sentence",)
        columns[name] = Dataset.from_dict(
            dict(zip(names, texts, strict=True))
            | {"label": [row.label for _, row in rows], "idx": [idx for idx, _ in rows]}
        )
    return as_raw_features(recipe, DatasetDict(columns), where=f"data folder {folder}")


def _datasets_files(folder: Path) -> DatasetDict:
    """What ``datasets`` itself can read from the folder."""
    from datasets import DatasetDict, load_dataset, load_from_disk

    if (folder / "dataset_dict.json").is_file():
        try:
            loaded = load_from_disk(str(folder))
        except Exception as error:
            raise CannotTry(f"data folder {folder} could not be read ({first_line(error)})") from error
    else:
        found = {
            suffix: {split: files for split in SPLITS if (files := _files_of(folder, split, suffix))}
            for suffix in READERS
        }
        suffix = next((suffix for suffix, files in found.items() if files), None)
        if suffix is None:
            raise CannotTry(f"data folder {folder} has no layout that can be read; expected {_layouts()}")
        for file in (file for files in found[suffix].values() for file in files):
            if not Path(file).stat().st_size:
                raise CannotTry(
                    f"{file} is empty; expected one row per line" if suffix != "json" else f"{file} is empty"
                )
        try:
            # Without keep_default_na=False pandas reads the sentence "None" as no sentence.
            options = {"keep_default_na": False} if suffix == "csv" else {}
            loaded = load_dataset(READERS[suffix], data_files=found[suffix], **options)
        except Exception as error:
            cause = error.__cause__ or error
            raise CannotTry(
                f"data folder {folder}: the {suffix} files could not be read ({first_line(cause)})"
            ) from error
    assert isinstance(loaded, DatasetDict)  # dataset_dict.json and a dictionary of files both give one
    return loaded


def _files_of(folder: Path, split: str, suffix: str) -> list[str]:
    """``train.parquet``, or ``train-00000-of-00002.parquet`` and its like."""
    return sorted(str(path) for pattern in (split, f"{split}-*") for path in folder.glob(f"{pattern}.{suffix}"))


def as_raw_features(recipe: Recipe, loaded: DatasetDict, *, where: str) -> DatasetDict:
    """The same rows with exactly the columns and types of :func:`raw_features`; a missing idx is the running number.

    Raises:
        CannotTry: a split or a column is missing, or a label is none of the recipe's.
    """
    from datasets import ClassLabel, DatasetDict

    features = raw_features(recipe)
    cast = DatasetDict()
    for split in SPLITS:
        if split not in loaded:
            raise CannotTry(f"{where} has no {split} split; found {', '.join(map(str, loaded)) or 'none'}")
        rows = loaded[split].with_format(None)
        if "idx" not in rows.column_names:
            rows = rows.add_column("idx", list(range(len(rows))))
        missing = [name for name in features if name not in rows.column_names]
        if missing:
            raise CannotTry(
                f"{where}: the {split} split has no column {missing[0]!r}; found {', '.join(rows.column_names)}"
            )
        if not len(rows):
            raise CannotTry(f"{where}: the {split} split has no rows")
        label = rows.features[recipe.label_column]
        if isinstance(label, ClassLabel) and tuple(label.names) != recipe.label_names:
            raise CannotTry(
                f"{where}: the {split} split calls its labels {', '.join(label.names)}; the recipe expects "
                f"{', '.join(recipe.label_names)}; set the recipe's label_names and num_labels"
            )
        labels = rows[recipe.label_column]
        if all(name in recipe.label_names for name in labels):
            labels = [recipe.label_names.index(name) for name in labels]
            rows = rows.remove_columns(recipe.label_column).add_column(recipe.label_column, labels)
        _check_labels(recipe, labels, split, where)
        for name in recipe.text_columns:
            _check_texts(name, rows[name], split, where)
        try:
            cast[split] = rows.select_columns(list(features)).cast(features)
        except Exception as error:
            raise CannotTry(
                f"{where}: the {split} split has columns of the wrong types ({first_line(error)}); expected {features}"
            ) from error
    return cast


def _check_labels(recipe: Recipe, labels: Iterable[Any], split: str, where: str) -> None:
    """Whether each is one of the recipe's; the test set may have none.

    One odd value makes its whole column one of floats or texts: the odd one is named, not the first.
    """
    allowed = set(range(recipe.num_labels)) | ({UNLABELLED} if split == "test" else set())
    wrong = [(row, label) for row, label in enumerate(labels) if not isinstance(label, int) or label not in allowed]
    if not wrong:
        return
    odd = next((each for each in wrong if _meant(each[1]) not in allowed), None)
    floats = [label for _, label in wrong if isinstance(label, float)]
    if any(not label.is_integer() for label in floats) or (odd is None and floats):
        raise CannotTry(f"{where}: the {split} split has labels that are floats; {REGRESSION}")
    row, label = odd or wrong[0]
    raise CannotTry(
        f"{where}: row {row} of the {split} split has the label {shortened(repr(label), 40)}; expected one of the "
        f"recipe's {recipe.num_labels} labels, {', '.join(map(str, range(recipe.num_labels)))}, as a whole number, or "
        f"in all rows of the split one of its label_names, {', '.join(recipe.label_names)}"
    )


def _check_texts(name: str, texts: Iterable[Any], split: str, where: str) -> None:
    """Whether each is a text that can be tokenized."""
    for row, text in enumerate(texts):
        wrong = None
        if text is None:
            wrong = "nothing"
        elif isinstance(text, str) and len(text) > LONGEST_TEXT:
            wrong = f"{len(text)} characters"
        elif isinstance(text, str) and "\0" in text:
            wrong = "a NUL byte"
        if wrong:
            raise CannotTry(
                f"{where}: row {row} of the {split} split has {wrong} in {name}; expected a text of up to "
                f"{LONGEST_TEXT} characters"
            )


def _meant(label: Any) -> int | None:
    """The whole number that a label of a column of texts or floats may stand for, if any."""
    try:
        return int(label)
    except (TypeError, ValueError, OverflowError):
        return None
