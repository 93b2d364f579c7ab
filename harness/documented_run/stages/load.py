"""Load: the raw corpus (document 001, "Loading a dataset from the Hub")."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from harness.documented_run.claims import claim
from harness.documented_run.sources import load_raw_datasets
from harness.documented_run.stages.chain import RECIPE_RESPECTED, Run, Stage
from harness.findings import Finding, count, expect

STAGE = Stage("load")


@STAGE.step
def load(run: Run) -> None:
    run.raw_datasets = load_raw_datasets(run.recipe)


SPLIT_SIZES = claim("split-sizes")


@STAGE.check(SPLIT_SIZES, fault="The splits do not have the documented numbers of rows.")
def split_sizes(run: Run) -> Iterator[Finding]:
    """The splits have the documented numbers of rows."""
    expected = SPLIT_SIZES.expected[run.recipe.dataset]
    observed = {name: len(rows) for name, rows in run.raw_datasets.items()}
    yield from expect(
        expected, observed, hint="Load the whole corpus: a truncated download or a filtered copy gives other results."
    )


@STAGE.check(
    claim("raw-columns"),
    fallback_invariant=RECIPE_RESPECTED,
    fault="A split lacks a column, or has one that the recipe does not name.",
)
def raw_columns(run: Run) -> Iterator[Finding]:
    """Every split has the text columns, the label and idx, and no other."""
    expected = {*run.recipe.text_columns, run.recipe.label_column, "idx"}
    for name, rows in run.raw_datasets.items():
        yield from expect(
            expected,
            set(rows.column_names),
            where=f"split {name}",
            hint="Name the corpus's own columns in the recipe (text_columns, label_column).",
        )


RAW_FEATURES = claim("raw-features")


@STAGE.check(RAW_FEATURES, fault="A column has another type than the documented one.")
def raw_features(run: Run) -> Iterator[Finding]:
    """Sentences are strings, the label is a ClassLabel, idx is an int32."""
    expected = dict.fromkeys(run.recipe.text_columns, RAW_FEATURES.expected["sentence"]) | {
        run.recipe.label_column: RAW_FEATURES.expected["label"],
        "idx": RAW_FEATURES.expected["idx"],
    }
    for name, rows in run.raw_datasets.items():
        observed = {
            column: feature.dtype if type(feature).__name__ == "Value" else type(feature).__name__
            for column, feature in rows.features.items()
        }
        yield from expect(
            expected,
            observed,
            where=f"split {name}",
            hint="Cast the columns; a label read as text or float trains another loss.",
        )


@STAGE.check(
    claim("label-names"),
    fallback_invariant=RECIPE_RESPECTED,
    fault="The labels have other names than the documented ones, or another order.",
)
def label_names(run: Run) -> Iterator[Finding]:
    """The labels are called as documented, in that order."""
    for name, rows in run.raw_datasets.items():
        observed = list(rows.features[run.recipe.label_column].names)
        yield from expect(
            list(run.recipe.label_names),
            observed,
            where=f"split {name}",
            hint="Exchanged names mean exchanged labels: F1 counts the wrong class.",
        )


FIRST_TRAINING_ROW = claim("first-training-row")


@STAGE.check(FIRST_TRAINING_ROW, fault="The first training row is not the documented one.")
def first_training_row(run: Run) -> Iterator[Finding]:
    """The first training row is the documented one."""
    expected = FIRST_TRAINING_ROW.expected
    row = run.raw_datasets["train"][0]
    text = "\t".join(row[name] for name in run.recipe.text_columns)
    observed = {
        "idx": row["idx"],
        "label": row[run.recipe.label_column],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    if observed != expected:
        yield Finding(
            expected=f"{expected}",
            observed=f"{observed}, {text[:60]!r}...",
            where="split train, row 0",
            hint="The rows are in another order, read with another encoding or quoting, or of another corpus.",
        )


@STAGE.check("non-empty-text", fault="Some sentences are empty.")
def non_empty_text(run: Run) -> Iterator[Finding]:
    """No sentence is empty."""
    for name, rows in run.raw_datasets.items():
        for column in run.recipe.text_columns:
            empty = [row for row, text in enumerate(rows[column]) if not (text and text.strip())]
            if empty:
                yield Finding(
                    expected="text in every row",
                    observed=f"{len(empty)} empty rows, the first is row {empty[0]}",
                    where=f"split {name}, column {column}",
                    hint="Look at that row in the source: it was read with the wrong separator or quoting.",
                )


@STAGE.check("known-labels", fault="Some labels are none of the recipe's.")
def known_labels(run: Run) -> Iterator[Finding]:
    """Every training and validation label is one of the recipe's."""
    for name in ("train", "validation"):
        strange = sorted(set(run.raw_datasets[name][run.recipe.label_column]) - set(range(run.recipe.num_labels)))
        if strange:
            yield Finding(
                expected=f"labels 0 to {run.recipe.num_labels - 1}",
                observed=f"{strange}",
                where=f"split {name}",
                hint="Drop the rows without a label, or give them one.",
            )


@STAGE.check("both-classes", severity="warning", fault="A class has no row in the training or the validation data.")
def both_classes(run: Run) -> Iterator[Finding]:
    """The training and the validation data have rows of every class."""
    for name in ("train", "validation"):
        absent = set(range(run.recipe.num_labels)) - set(run.raw_datasets[name][run.recipe.label_column])
        if absent:
            yield Finding(
                expected=f"all of the {run.recipe.num_labels} classes",
                observed=f"no row of class {', '.join(map(str, sorted(absent)))}",
                where=f"split {name}",
                hint="The label column was read wrongly, or the rows were sorted before they were cut.",
            )


@STAGE.check("splits-disjoint", severity="warning", fault="Validation rows are also training rows.")
def splits_disjoint(run: Run) -> Iterator[Finding]:
    """No validation row is also a training row."""

    def texts(split: str) -> list[tuple[str, ...]]:
        return list(zip(*(run.raw_datasets[split][name] for name in run.recipe.text_columns), strict=True))

    train = set(texts("train"))
    leaked = [row for row, text in enumerate(texts("validation")) if text in train]
    if leaked:
        rows = count(len(leaked), "validation row")
        yield Finding(
            message=f"{rows} {'are' if leaked[1:] else 'is'} also in the training data.",
            expected="no validation row in the training data",
            observed=f"{len(leaked)} of {len(run.raw_datasets['validation'])} rows, the first is row {leaked[0]}",
            where="split validation",
            hint="Split before duplicating or augmenting rows; the metric measures memory otherwise.",
        )
