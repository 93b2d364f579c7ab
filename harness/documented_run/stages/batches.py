"""Batches: the two dataloaders and the collator (documents "Prepare for training", "Dynamic padding")."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from harness.compat import as_list
from harness.documented_run.claims import claim
from harness.documented_run.stages.chain import RECIPE_RESPECTED, Run, Stage, first_difference
from harness.documented_run.stages.checkpoint import load_tokenizer, model_config
from harness.findings import Finding, NotApplicable, expect

STAGE = Stage("batches")

ENOUGH_ROWS = 10
"""Smallest number of rows of which two random orders are never the same (1 in 3.6 million)."""

FIXED_LENGTH = 128
"""To how many tokens rows are padded where every row has one length, as the documents recommend for TPUs."""


@STAGE.step
def batches(run: Run) -> None:
    run.train_dataloader = DataLoader(
        run.model_datasets["train"],
        shuffle=run.recipe.shuffle,
        batch_size=run.recipe.batch_size,
        collate_fn=run.data_collator,
    )
    run.eval_dataloader = DataLoader(
        run.model_datasets["validation"],
        batch_size=run.recipe.batch_size,
        collate_fn=run.data_collator,
    )
    run.train_dl, run.eval_dl = run.train_dataloader, run.eval_dataloader


def first_rows(run: Run, count: int) -> list[dict[str, Any]]:
    """The first training rows, as the collator gets them."""
    rows = run.model_datasets["train"]
    return [rows[row] for row in range(count)]


FIRST_EIGHT_BATCH = claim("first-eight-batch")


@STAGE.check(FIRST_EIGHT_BATCH, fault="The first eight training rows collate to other shapes than the documented ones.")
def first_eight_rows_collate(run: Run) -> Iterator[Finding]:
    """The first eight training rows collate to the documented shapes."""
    expected = FIRST_EIGHT_BATCH.expected
    batch = run.data_collator(first_rows(run, expected["labels"][0]))
    observed = {name: list(values.shape) for name, values in batch.items()}
    yield from expect(
        expected,
        observed,
        where="split train, rows 0 to 7",
        hint="Use DataCollatorWithPadding with the checkpoint's tokenizer, without a fixed length.",
    )


@STAGE.check(claim("strings-make-no-tensors"), fault="The collator accepts rows that still have a sentence.")
def strings_make_no_tensors(run: Run) -> Iterator[Finding]:
    """The collator refuses rows that still have a sentence."""
    column = run.recipe.text_columns[0]
    texts = run.raw_datasets["train"][:2][column]
    rows = [row | {column: text} for row, text in zip(first_rows(run, 2), texts, strict=True)]
    try:
        batch = run.data_collator(rows)
    except (ValueError, TypeError):
        return
    yield Finding(
        expected=f"an error: {column} is text",
        observed=f"a batch of {sorted(batch)}",
        where="data_collator",
        hint="Remove the text columns yourself: a collator that drops what it does not know hides a wrong name.",
    )


@STAGE.check(claim("batch-keys"), fault="A batch has a column too many or too few.")
def batch_keys(run: Run) -> Iterator[Finding]:
    """A batch has exactly the columns of the model's data."""
    expected = set(run.model_datasets["train"].column_names)
    for name, loader in (("train", run.train_dataloader), ("validation", run.eval_dataloader)):
        observed = set(next(iter(loader)))
        yield from expect(
            expected,
            observed,
            where=f"{name} dataloader",
            hint="The collator drops or adds keys; the model ignores silently that a key is missing.",
        )


@STAGE.check(
    claim("batch-shapes"),
    fallback_invariant=RECIPE_RESPECTED,
    fault="A batch has another shape than its rows and their longest give.",
)
def batch_shapes(run: Run) -> Iterator[Finding]:
    """A batch is batch size x its longest row; labels has one entry for each row."""
    for name, loader in (("train", run.train_dataloader), ("validation", run.eval_dataloader)):
        batch = next(iter(loader))
        rows = min(run.recipe.batch_size, len(run.model_datasets[name]))
        longest = int(batch["attention_mask"].sum(dim=1).max())
        for key, values in batch.items():
            expected = [rows] if key == "labels" else [rows, longest]
            yield from expect(
                expected,
                list(values.shape),
                of=key,
                where=f"{name} dataloader",
                hint="Check batch_size, and that the collator pads to the longest row of the batch only.",
            )


@STAGE.check(
    claim("dynamic-padding"),
    fault="Rows of a batch are changed, have another's label, or have padding that the mask does not hide.",
)
def padding_is_marked(run: Run) -> Iterator[Finding]:
    """Each row of a batch is a row of the data with its own label, and padding with mask 0; nothing else."""
    fill = {"input_ids": run.tokenizer.pad_token_id, "token_type_ids": run.tokenizer.pad_token_type_id}
    for name, loader in (("train", run.train_dataloader), ("validation", run.eval_dataloader)):
        data = run.model_datasets[name].with_format(None)
        keys = sorted(data.column_names)
        known = {str([row[key] for key in keys]) for row in data}
        batch = next(iter(loader))
        mask = batch["attention_mask"].bool()
        for row, kept in enumerate(mask):
            values = [batch[key][row].tolist() if key == "labels" else batch[key][row][kept].tolist() for key in keys]
            padding = {
                key: set(batch[key][row][~kept].tolist()) - {fill.get(key, 0)} for key in keys if key != "labels"
            }
            if str(values) not in known or any(padding.values()):
                yield Finding(
                    expected=f"a row of the {name} data and its label, then {fill} with attention_mask 0",
                    observed=f"{ {key: batch[key][row].tolist() for key in keys} }",
                    where=f"{name} dataloader, row {row} of the first batch",
                    hint="Use DataCollatorWithPadding; padding with mask 1 takes part in the attention.",
                )
                break


@STAGE.check(
    claim("padding-token"),
    fault="Padding is another token, or on another side, than the checkpoint's tokenizer has it.",
)
def pads_as_the_checkpoints_tokenizer(run: Run) -> Iterator[Finding]:
    """Padding is the pad token of the checkpoint's tokenizer, on the side on which that tokenizer pads."""
    tokenizer = load_tokenizer(run.recipe)
    side, token = tokenizer.padding_side, tokenizer.pad_token_id
    for name, loader in (("train", run.train_dataloader), ("validation", run.eval_dataloader)):
        batch = next(iter(loader))
        padding = batch["attention_mask"] == 0
        sides = {"left" if row[0] else "right" if row[-1] else "middle" for row in padding if row.any()}
        tokens = set(batch["input_ids"][padding].tolist())
        if not (sides <= {side} and tokens <= {token}):
            yield Finding(
                expected=f"token {token} on the {side}",
                observed=f"{_listed(tokens)} on the {_listed(sides)}",
                where=f"{name} dataloader",
                hint="Give DataCollatorWithPadding the checkpoint's own tokenizer, with its padding_side.",
            )


def _listed(found: set[Any]) -> str:
    return " and ".join(map(str, sorted(found)))


def fixed_length_rows(run: Run, split: str, config: Any) -> list[dict[str, Any]]:
    """The rows of a split as the collator gets them, each padded to :data:`FIXED_LENGTH`.

    ``config`` is the model's.

    Raises:
        NotApplicable: the model does not take so many tokens, or there are longer rows, which would be cut.
    """
    length = FIXED_LENGTH
    takes = getattr(config, "max_position_embeddings", -1)
    if 0 < takes < length:
        raise NotApplicable(f"the model takes {takes} tokens")
    if (longest := max(map(len, run.tokenized_datasets[split]["input_ids"]))) > length:
        raise NotApplicable(f"rows of up to {longest} tokens would be cut to {length}")
    raw = run.raw_datasets[split]
    columns = [as_list(raw[name]) for name in run.recipe.text_columns]
    encoded = run.tokenizer(*columns, padding="max_length", max_length=length, truncation=True)
    labels = raw[run.recipe.label_column]
    return [
        {name: values[row] for name, values in encoded.items()} | {"labels": labels[row]} for row in range(len(raw))
    ]


@STAGE.check(claim("fixed-length-batches"), fault="Rows that are padded to 128 tokens make batches of another width.")
def fixed_length_batches(run: Run) -> Iterator[Finding]:
    """Rows that are padded to 128 tokens make batches of that width, all of them."""
    rows, size = fixed_length_rows(run, "validation", model_config(run.recipe)), run.recipe.batch_size
    expected = {FIXED_LENGTH}
    batches = [run.data_collator(rows[start : start + size]) for start in range(0, len(rows), size)]
    observed = {batch["input_ids"].shape[1] for batch in batches}
    yield from expect(
        expected,
        observed,
        of="batches of widths",
        where="split validation",
        hint="A TPU compiles again for each new width of a batch: let the collator keep the padding it is given.",
    )


def order(run: Run, loader: DataLoader[Any], split: str) -> list[int]:
    """The rows of ``split`` in the order in which one pass over ``loader`` brings them, told apart by their content."""
    places: dict[tuple[int, ...], list[int]] = {}
    for row, ids in enumerate(run.model_datasets[split].with_format(None)["input_ids"]):
        places.setdefault(tuple(ids), []).append(row)
    seen = []
    for batch in loader:
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
            rows = places.get(tuple(ids[mask.bool()].tolist()), [])
            seen.append(rows.pop(0) if rows else -1)
    return seen


@STAGE.check(
    claim("train-shuffled"), fault="The training rows are not shuffled, or come in the same order in each epoch."
)
def train_shuffled(run: Run) -> Iterator[Finding]:
    """The training order is neither the dataset's nor the same in two epochs."""
    if len(run.model_datasets["train"]) < ENOUGH_ROWS:
        raise NotApplicable(f"fewer than {ENOUGH_ROWS} rows can come in one order by chance")
    first, second = (order(run, run.train_dataloader, "train") for _ in range(2))
    for name, unlike in (("the dataset's order", list(range(len(first)))), ("the order of the epoch before", second)):
        if first == unlike:
            yield Finding(
                expected="a new random order every epoch",
                observed=name,
                where="train dataloader",
                hint="Give the training DataLoader shuffle=True and no generator that is seeded anew.",
            )


@STAGE.check(
    claim("eval-in-order"),
    fault="The validation dataloader leaves rows out, repeats them, or brings them in another order.",
)
def eval_in_order(run: Run) -> Iterator[Finding]:
    """The validation dataloader brings each row once, in the dataset's order."""
    expected = list(range(len(run.model_datasets["validation"])))
    observed = order(run, run.eval_dataloader, "validation")
    wrong = first_difference(observed, expected)
    if wrong is not None:
        yield Finding(
            expected=f"rows 0 to {len(expected) - 1}, each once",
            observed=f"{len(observed)} rows, another order from position {wrong} on",
            where="validation dataloader",
            hint="No shuffle, drop_last or sampler for the validation data.",
        )


BATCHES_PER_EPOCH = claim("batches-per-epoch")


@STAGE.check(BATCHES_PER_EPOCH, fault="An epoch does not have the documented number of batches.")
def documented_number_of_batches(run: Run) -> Iterator[Finding]:
    """An epoch has the documented number of batches."""
    expected = BATCHES_PER_EPOCH.expected[run.recipe.dataset]
    yield from expect(
        expected,
        len(run.train_dataloader),
        where="len(train_dataloader)",
        hint="Check batch_size and drop_last, and that all rows are there.",
    )


@STAGE.check("batches-cover-rows", fault="An epoch does not have as many batches as its rows take.")
def batches_cover_all_rows(run: Run) -> Iterator[Finding]:
    """An epoch has as many batches as it takes for all training rows, the last one smaller."""
    rows = len(run.model_datasets["train"])
    expected = math.ceil(rows / run.recipe.batch_size)
    yield from expect(
        expected,
        len(run.train_dataloader),
        of=f"for {rows} rows in batches of {run.recipe.batch_size}",
        where="len(train_dataloader)",
        hint="drop_last=True leaves the last rows of every epoch out; check batch_size too.",
    )
