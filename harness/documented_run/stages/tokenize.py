"""Tokenize: sentences to ids (document 001, "Preprocessing a dataset")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import DataCollatorWithPadding

from harness.compat import as_list
from harness.documented_run.claims import Invariant, claim
from harness.documented_run.stages.chain import Run, Stage, first_difference
from harness.documented_run.stages.checkpoint import load_tokenizer, model_config, two_segments_only
from harness.findings import Finding, NotApplicable, expect

STAGE = Stage("tokenize")

FIRST, SECOND = "This is the first sentence.", "This is the second one."
"""The document's example pair."""


@STAGE.step
def tokenize(run: Run) -> None:
    tokenizer = load_tokenizer(run.recipe)

    def tokenize_function(example: dict[str, Any]) -> Any:
        return tokenizer(*(example[name] for name in run.recipe.text_columns), truncation=True)

    run.tokenizer, run.tokenize_function = tokenizer, tokenize_function
    run.tokenized_datasets = run.raw_datasets.map(tokenize_function, batched=True)
    run.data_collator = DataCollatorWithPadding(tokenizer=tokenizer)


IF_ANOTHER = "Where that is meant, set the recipe's field vocabulary to a name of its own."


def _differs(observed: list[Any], expected: list[Any], hint: str) -> Iterator[Finding]:
    yield from expect(expected, observed, where=f"tokenizer({FIRST!r}, {SECOND!r})", hint=hint)


DOCUMENTED_PAIR_IDS = claim("documented-pair-ids")


@STAGE.check(DOCUMENTED_PAIR_IDS, fault="The document's pair of sentences does not give the documented ids.")
def documented_pair_ids(run: Run) -> Iterator[Finding]:
    """The document's pair of sentences gives the documented ids."""
    yield from _differs(
        run.tokenizer(FIRST, SECOND)["input_ids"],
        DOCUMENTED_PAIR_IDS.expected,
        f"This is another vocabulary or another normalisation (cased, accents) than bert-base-uncased's. {IF_ANOTHER}",
    )


DOCUMENTED_PAIR_TOKENS = claim("documented-pair-tokens")


@STAGE.check(DOCUMENTED_PAIR_TOKENS, fault="The ids of the document's pair do not read back as the documented tokens.")
def documented_pair_tokens(run: Run) -> Iterator[Finding]:
    """The ids of the document's pair read back as the documented tokens."""
    yield from _differs(
        run.tokenizer.convert_ids_to_tokens(run.tokenizer(FIRST, SECOND)["input_ids"]),
        DOCUMENTED_PAIR_TOKENS.expected,
        f"The vocabulary's order or the special tokens differ from bert-base-uncased's. {IF_ANOTHER}",
    )


DOCUMENTED_PAIR_TOKEN_TYPE_IDS = claim("documented-pair-token-type-ids")


@STAGE.check(
    DOCUMENTED_PAIR_TOKEN_TYPE_IDS, fault="The token_type_ids of the document's pair are not the documented ones."
)
def documented_pair_token_type_ids(run: Run) -> Iterator[Finding]:
    """The token_type_ids of the document's pair are the documented ones."""
    two_segments_only(run.recipe)
    yield from _differs(
        run.tokenizer(FIRST, SECOND).get("token_type_ids", []),
        DOCUMENTED_PAIR_TOKEN_TYPE_IDS.expected,
        f"The model cannot tell the sentences apart: use the checkpoint's own tokenizer class. {IF_ANOTHER}",
    )


DOCUMENTED_PAIR_ATTENTION_MASK = claim("documented-pair-attention-mask")


@STAGE.check(
    DOCUMENTED_PAIR_ATTENTION_MASK, fault="The attention_mask of the document's pair is not the documented one."
)
def documented_pair_attention_mask(run: Run) -> Iterator[Finding]:
    """The attention_mask of the document's pair is the documented one."""
    yield from _differs(
        run.tokenizer(FIRST, SECOND).get("attention_mask", []),
        DOCUMENTED_PAIR_ATTENTION_MASK.expected,
        f"A single pair has no padding, so nothing is masked. {IF_ANOTHER}",
    )


@STAGE.check(
    "own-text", fault="Rows have ids of other text than their own sentences: lost, exchanged, repeated or cut short."
)
def rows_encode_their_own_text(run: Run) -> Iterator[Finding]:
    """The ids of each row are those of its own sentences: none lost, exchanged, repeated or cut short."""
    for name, raw in run.raw_datasets.items():
        expected = run.tokenizer(*(as_list(raw[column]) for column in run.recipe.text_columns), truncation=True)[
            "input_ids"
        ]
        for row, (ids, own) in enumerate(zip(run.tokenized_datasets[name]["input_ids"], expected, strict=False)):
            if list(ids) != list(own):
                yield Finding(
                    expected=f"{run.tokenizer.decode(own)!r}, {len(own)} tokens",
                    observed=f"{run.tokenizer.decode(ids)!r}, {len(ids)} tokens",
                    where=f"split {name}, row {row}",
                    hint='Tokenize with tokenizer(example["sentence1"], example["sentence2"], truncation=True).',
                )
                break


@STAGE.check(claim("pair-encoding"), fault="A row is not [CLS] A [SEP] B [SEP] with segment 0, then 1.")
def pairs_carry_token_type_ids(run: Run) -> Iterator[Finding]:
    """Each row is [CLS] A [SEP] B [SEP] with segment 0 up to the first [SEP] and segment 1 behind it."""
    two_segments_only(run.recipe)
    cls, sep = run.tokenizer.cls_token_id, run.tokenizer.sep_token_id
    for name, rows in run.tokenized_datasets.items():
        segments = rows["token_type_ids"] if "token_type_ids" in rows.column_names else [[]] * len(rows)
        for row, (ids, types) in enumerate(zip(rows["input_ids"], segments, strict=True)):
            ends = [place for place, token in enumerate(ids) if token == sep]
            first = ends[0] + 1 if ends else 0
            if (
                ids[0] != cls
                or len(ends) != 2
                or ends[1] != len(ids) - 1
                or ends[1] <= ends[0] + 1
                or list(types) != [0] * first + [1] * (len(ids) - first)
            ):
                yield Finding(
                    expected="[CLS] A [SEP] B [SEP], token_type_ids 0 for [CLS] A [SEP] and 1 for B [SEP]",
                    observed=f"{run.tokenizer.convert_ids_to_tokens(ids)}, token_type_ids {list(types)}",
                    where=f"split {name}, row {row}",
                    hint="Give the tokenizer both sentences as two arguments, and keep token_type_ids.",
                )
                break


@STAGE.check(
    claim("plain-lists"),
    fault="tokenizer(..., padding=True) on a whole split does not return plain lists of one length.",
)
def plain_lists(run: Run) -> Iterator[Finding]:
    """tokenizer(..., padding=True) on a whole split returns plain lists, all of one length."""
    # list(): from datasets 4.0 a column is a Column, which tokenizers refuse; the documents' own call fails there.
    columns = [as_list(run.raw_datasets["validation"][name]) for name in run.recipe.text_columns]
    encoded = run.tokenizer(*columns, padding=True, truncation=True)
    kinds = {name: type(values).__name__ for name, values in encoded.items()}
    lengths = {len(ids) for ids in encoded["input_ids"]}
    if set(kinds.values()) != {"list"} or len(encoded["input_ids"]) != len(columns[0]) or len(lengths) != 1:
        yield Finding(
            expected=f"a list of {len(columns[0])} rows under each key, every row of one length",
            observed=f"{kinds} with {len(encoded['input_ids'])} rows of {len(lengths)} different lengths",
            hint="Without return_tensors the tokenizer gives lists; look for a wrapper around it.",
        )


TOKENIZER_KEYS = claim("tokenizer-keys")


@STAGE.check(TOKENIZER_KEYS, fault="The tokenizer does not return the documented keys.")
def tokenizers_keys(run: Run) -> Iterator[Finding]:
    """The tokenizer returns the documented keys and no others."""
    # Of the documents' three, a tokenizer without segments (DistilBERT's) returns no token_type_ids.
    expected = set(TOKENIZER_KEYS.expected) & set(run.tokenizer.model_input_names)
    observed = set(run.tokenizer(FIRST, SECOND))
    yield from expect(
        expected,
        observed,
        where="tokenizer(first, second)",
        hint="Each key becomes a column: look at return_… arguments and at wrappers of the tokenizer.",
    )


@STAGE.check(
    claim("map-keeps-dataset"),
    fault="map(batched=True) has lost rows or columns, or has not added what the tokenizer returns.",
)
def map_keeps_dataset(run: Run) -> Iterator[Finding]:
    """map(batched=True) keeps every row and column of every split and adds what the tokenizer returns."""
    added = set(run.tokenizer(FIRST))
    for name, raw in run.raw_datasets.items():
        rows = run.tokenized_datasets[name]
        expected = set(raw.column_names) | added
        if type(rows) is not type(raw) or len(rows) != len(raw) or set(rows.column_names) != expected:
            yield Finding(
                expected=f"a {type(raw).__name__} of {len(raw)} rows with {sorted(expected)}",
                observed=f"a {type(rows).__name__} of {len(rows)} rows with {sorted(rows.column_names)}",
                where=f"split {name}",
                hint="Let the function given to map return the tokenizer's output only, one entry for each row.",
            )


@STAGE.check(claim("no-padding-at-tokenization"), fault="Rows are padded before they are in a batch.")
def no_padding_at_tokenization(run: Run) -> Iterator[Finding]:
    """No row holds padding: it keeps its own length until it is in a batch."""
    for name, rows in run.tokenized_datasets.items():
        padded = [row for row, mask in enumerate(rows["attention_mask"]) if not all(mask)]
        if padded:
            yield Finding(
                expected="attention_mask all 1",
                observed=f"{len(padded)} padded rows, the first is row {padded[0]}",
                where=f"split {name}",
                hint="Leave padding to the collator: call the tokenizer without padding=, and reset a padding setting "
                "saved in tokenizer.json with tokenizer.backend_tokenizer.no_padding().",
            )


@STAGE.check(claim("truncation"), fault="Rows are longer than the model takes, or cut where they need not be.")
def truncation(run: Run) -> Iterator[Finding]:
    """No row is longer than the model takes, and one that would be is cut."""
    takes = getattr(model_config(run.recipe), "max_position_embeddings", None)
    takes = takes if takes and takes > 0 else None  # XLNet's is -1: no limit
    states = run.tokenizer.model_max_length if run.tokenizer.model_max_length < 1_000_000 else None
    if takes is None and states is None:
        raise NotApplicable("neither the model nor the tokenizer states a maximum length")
    limit = min(length for length in (takes, states) if length is not None)
    lengths = {f"split {name}": max(map(len, rows["input_ids"])) for name, rows in run.tokenized_datasets.items()}
    if states is not None:
        too_long = [run.raw_datasets["train"][0][run.recipe.text_columns[0]] + " and so on" * limit]
        example = run.tokenize_function(dict.fromkeys(run.recipe.text_columns, too_long))
        lengths[f"a text of {len(too_long[0].split())} words"] = len(example["input_ids"][0])
    for where, longest in lengths.items():
        if longest > limit:
            yield Finding(
                expected=f"at most {limit} tokens",
                observed=f"{longest}",
                where=where,
                hint="Tokenize with truncation=True and a tokenizer that states model_max_length; a longer row fails "
                "in the middle of the training.",
            )


FIRST_EIGHT_LENGTHS = claim("first-eight-lengths")


@STAGE.check(FIRST_EIGHT_LENGTHS, fault="The first eight training rows do not have the documented lengths.")
def first_eight_lengths(run: Run) -> Iterator[Finding]:
    """The first eight training rows have the documented lengths."""
    expected = FIRST_EIGHT_LENGTHS.expected
    observed = [len(ids) for ids in run.tokenized_datasets["train"][: len(expected)]["input_ids"]]
    yield from expect(
        expected,
        observed,
        where="split train, rows 0 to 7",
        hint="The rows are in another order, or the tokenizer splits words, pads or truncates otherwise.",
    )


@STAGE.check(claim("fixed-length-padding"), fault='padding="max_length" gives rows of different lengths.')
def fixed_length_padding(run: Run) -> Iterator[Finding]:
    """padding="max_length" gives every row one fixed length, as TPUs want it."""
    length = max(len(ids) for ids in run.tokenized_datasets["validation"]["input_ids"]) + 1
    columns = [as_list(run.raw_datasets["validation"][name]) for name in run.recipe.text_columns]
    encoded = run.tokenizer(*columns, padding="max_length", max_length=length, truncation=True)
    observed = {len(ids) for ids in encoded["input_ids"]}
    yield from expect(
        {length},
        observed,
        of="rows of lengths",
        hint="The tokenizer ignores padding or max_length; compare it with the checkpoint's own.",
    )


@STAGE.check("text-survives", fault="The tokenizer does not know the text: many tokens are [UNK].")
def text_survives(run: Run) -> Iterator[Finding]:
    """The tokenizer knows the text: at most 5 % of a split's tokens are [UNK]."""
    unknown = run.tokenizer.unk_token_id
    for name, rows in run.tokenized_datasets.items():
        tokens = [token for ids in rows["input_ids"] for token in ids]
        share = tokens.count(unknown) / len(tokens)
        if share > 0.05:
            yield Finding(
                expected="at most 5 % [UNK]",
                observed=f"{share:.1%}",
                where=f"split {name}",
                hint="This checkpoint's vocabulary does not fit this text; take a checkpoint for its language.",
            )


ROWS_ALIGNED = Invariant("rows-aligned", "Every row keeps its own label from the raw data to the model's columns.")


@STAGE.check(ROWS_ALIGNED, fault="Tokenizing has reordered the rows or changed a label.")
def rows_keep_their_labels(run: Run) -> Iterator[Finding]:
    """Tokenizing neither reorders the rows nor changes a label."""
    for name, raw in run.raw_datasets.items():
        for column in ("idx", run.recipe.label_column):
            row = first_difference(list(raw[column]), list(run.tokenized_datasets[name][column]))
            if row is not None:
                yield Finding(
                    expected="the raw rows in their order",
                    observed=f"column {column} differs from row {row} on",
                    where=f"split {name}",
                    hint="Do not sort, shuffle or relabel in the function given to map.",
                )
