"""Columns: what the model expects, as tensors (document "Prepare for training")."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from harness.documented_run.claims import claim
from harness.documented_run.stages.chain import Run, Stage, first_difference
from harness.documented_run.stages.tokenize import ROWS_ALIGNED
from harness.findings import Finding, expect

STAGE = Stage("columns")


@STAGE.step
def columns(run: Run) -> None:
    tokenized_datasets = run.tokenized_datasets
    tokenized_datasets = tokenized_datasets.remove_columns([*run.recipe.text_columns, "idx"])
    if run.recipe.label_column != "labels":
        tokenized_datasets = tokenized_datasets.rename_column(run.recipe.label_column, "labels")
    tokenized_datasets.set_format("torch")
    run.model_datasets = tokenized_datasets


@STAGE.check(claim("text-columns-removed"), fault="The sentences or idx are still in the data.")
def text_columns_removed(run: Run) -> Iterator[Finding]:
    """The sentences and idx are gone."""
    for name, rows in run.model_datasets.items():
        left = sorted({*run.recipe.text_columns, "idx"} & set(rows.column_names))
        if left:
            yield Finding(
                expected="no column that the model does not take",
                observed=f"{left} still there",
                where=f"split {name}",
                hint="Remove them with remove_columns; text cannot become a tensor.",
            )


LABEL_RENAMED = claim("label-renamed")


@STAGE.check(LABEL_RENAMED, fault="No column is called labels, the name of the model's argument.")
def label_renamed(run: Run) -> Iterator[Finding]:
    """The label column is called labels, the name of the model's argument."""
    for name, rows in run.model_datasets.items():
        if LABEL_RENAMED.expected not in rows.column_names:
            yield Finding(
                expected=f"a column {LABEL_RENAMED.expected}",
                observed=f"{sorted(rows.column_names)}",
                where=f"split {name}",
                hint='Rename it with rename_column("label", "labels"); the model returns no loss without it.',
            )


MODEL_COLUMNS = claim("model-columns")


@STAGE.check(MODEL_COLUMNS, fault="The data has a column too many or too few for the model.")
def model_columns(run: Run) -> Iterator[Finding]:
    """Exactly labels and what the tokenizer returns are left, in any order."""
    # Of the documents' four, a tokenizer without segments (DistilBERT's) returns no token_type_ids.
    expected = set(MODEL_COLUMNS.expected) & {"labels", *run.tokenizer.model_input_names}
    for name, rows in run.model_datasets.items():
        yield from expect(
            expected,
            set(rows.column_names),
            where=f"split {name}",
            hint="Remove or rename the columns that differ; their order does not matter.",
        )


@STAGE.check(claim("torch-format"), fault="A column of a row is no tensor of whole numbers.")
def torch_format(run: Run) -> Iterator[Finding]:
    """Every column of a row is a tensor of whole numbers."""
    for name, rows in run.model_datasets.items():
        for column, value in rows[0].items():
            if not isinstance(value, torch.Tensor) or value.is_floating_point():
                yield Finding(
                    expected="torch.Tensor of int64",
                    observed=f"torch.Tensor of {value.dtype}"
                    if isinstance(value, torch.Tensor)
                    else type(value).__name__,
                    where=f"split {name}, column {column}",
                    hint='Call set_format("torch"); labels must be whole numbers, or the model takes a different loss.',
                )


@STAGE.check(ROWS_ALIGNED, fault="Rows have other ids or labels than they had before.")
def labels_stay_with_their_rows(run: Run) -> Iterator[Finding]:
    """Every row still has the ids and the label it had before."""
    for name, before in run.tokenized_datasets.items():
        after = run.model_datasets[name].with_format(None)
        for old, new in ((run.recipe.label_column, "labels"), ("input_ids", "input_ids")):
            row = first_difference(list(before[old]), list(after[new]))
            if row is not None:
                yield Finding(
                    expected=f"{old} as tokenized",
                    observed=f"{new} differs from row {row} on",
                    where=f"split {name}",
                    hint="Do not sort, shuffle or replace columns between tokenizing and batching.",
                )
