"""Each sentence of the documents has a claim, or a reason why there is none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.documented_run.claims import ALL, TITLES, WITHOUT_CLAIM, Claim, WithoutClaim
from harness.documented_run.documents.citations import text_of
from harness.documented_run.documents.index import Indexed, indexed, passages, says
from harness.documented_run.stages import CLAIMS
from harness.report.documents import index_lines

TEXT = """# Full training
## Prepare for training
- Two things are said. *One* is here:
- the other one goes on
in the next line, `too`
```python
optimizer = AdamW(  # not Adam
    model.parameters(), lr=5e-5,
)
len("#")
```
    1377

## Training loop
```python
+ optimizer = AdamW(model.parameters(), lr=5e-5)
loss.backward()
```
"""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The five documents, which are not part of the project."""
    folder = os.environ.get("HARNESS_DOCUMENTS")
    if not folder:
        pytest.skip("needs HARNESS_DOCUMENTS")
    return {name: text_of(Path(folder), name) for name in ALL}


@pytest.fixture(scope="module")
def found(texts: dict[str, str]) -> list[Indexed]:
    """What stands for each of their passages."""
    return indexed(CLAIMS.values(), texts)


def said(text: str, document: str = "003") -> list[tuple[int, str, str]]:
    return [(each.line, each.kind, each.text) for each in passages(document, text)]


def test_passages_are_sentences_statements_comments_and_outputs() -> None:
    assert said(TEXT) == [
        (1, "sentence", "Full training"),
        (2, "sentence", "Prepare for training"),
        (3, "sentence", "Two things are said."),
        (3, "sentence", "*One* is here:"),
        (4, "sentence", "the other one goes on\nin the next line, `too`"),
        (7, "code", "optimizer = AdamW(\nmodel.parameters(), lr=5e-5,\n)"),
        (7, "comment", "not Adam"),
        (10, "code", 'len("#")'),
        (12, "output", "1377"),
        (14, "sentence", "Training loop"),
        (16, "code", "+ optimizer = AdamW(model.parameters(), lr=5e-5)"),
        (17, "code", "loss.backward()"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n2\nimport torch\ntorch.cuda\n", [(3, "code", "import torch"), (4, "code", "torch.cuda")]),
        ("```\nsteps = epochs · batches\n```\n", [(2, "sentence", "steps = epochs · batches")]),
        ("In [1]:\nx = 1\n评估。更好\n", [(2, "code", "x = 1"), (3, "sentence", "评估。"), (3, "sentence", "更好")]),
        ("```python\nx\n-----\n{'a': 1}\n```\n", [(2, "code", "x"), (4, "output", "{'a': 1}")]),
        ("---\n\n***\n", []),
    ],
    ids=["numbered", "no code", "exported", "ruled", "no text"],
)
def test_each_form_of_document(text: str, expected: Sequence[tuple[int, str, str]]) -> None:
    assert said(text) == expected


def stands(claims: Sequence[Claim], reasons: Sequence[WithoutClaim] = (), text: str = TEXT) -> dict[int, str]:
    """By line what stands for the code of a document."""
    found = indexed(claims, {"003": text + "## Evaluation loop\n"}, reasons)
    return {
        each.passage.line: ", ".join(each.claims) or (each.reason or "MISSING")
        for each in found
        if each.passage.kind == "code"
    }


def test_a_claim_stands_for_what_it_quotes_and_for_the_same_code_elsewhere() -> None:
    adamw = Claim("adamw", "It is AdamW.", ("003",), TITLES["preparing"], words="model.parameters(), lr=5e-5")
    backward = Claim(
        "backward", "There is a backward pass.", ("003",), TITLES["training-loop"], words="loss.backward()"
    )
    assert stands([adamw]) == {7: "adamw", 10: "MISSING", 16: "adamw", 17: "MISSING"}
    assert stands([adamw, backward])[17] == "backward"
    assert stands([adamw], text=TEXT.replace("+ optimizer", "+ optimizer2"))[16] == "MISSING"


def test_a_reason_is_for_all_of_a_passage() -> None:
    why = WithoutClaim("is nothing", ("len(…)",), ("003",), "code")
    assert stands([], [why])[10] == "is nothing"
    for other in (("len(",), ("len(…",)):
        assert stands([], [WithoutClaim("is nothing", other)])[10] == ("is nothing" if "…" in other[0] else "MISSING")
    assert stands([], [WithoutClaim("is nothing", ("len(…)",), ("002",))])[10] == "MISSING"
    assert stands([], [WithoutClaim("is nothing", ("len(…)",), kind="output")])[10] == "MISSING"


def test_a_translation_follows_what_it_translates() -> None:
    text = "Train it.\n\n训练它。\n\n再训练。\n"
    assert [each.reason for each in indexed([], {"002": text}, ())] == [
        None,
        "the translation of what stands above it",
        None,
    ]
    assert [each.reason for each in indexed([], {"003": text}, ())] == [None] * 3


def test_what_is_missing_is_printed() -> None:
    lines = list(index_lines(indexed([], {"003": "Something new.\n"}, ()), []))
    assert lines[1].split() == ["003", "1", "sentence", "Something", "new.", "MISSING"]
    assert lines[-1].startswith("1 passages: 0 with a claim, 0 with a reason for none, 1 missing")


@pytest.mark.parametrize("document", ALL)
def test_no_passage_is_missing(document: str, found: list[Indexed]) -> None:
    missing = [each.passage for each in found if each.passage.document == document and each.missing]
    assert [f"{each.line}: {each.text}" for each in missing] == []


def test_every_reason_is_needed(found: list[Indexed]) -> None:
    """Each of its words is of a passage that no claim stands for, in each document that it names or in one."""
    without = [each.passage for each in found if not each.claims]
    unused = [
        (entry.why, words)
        for entry in WITHOUT_CLAIM
        for words in entry.words
        if not any(
            passage.document in entry.documents and entry.kind in (None, passage.kind) and says(passage, words)
            for passage in without
        )
    ]
    assert unused == []


def test_every_character_is_in_a_passage(found: list[Indexed], texts: dict[str, str]) -> None:
    """But for what is no text: marks, fences, the numbers of lines of code, rules."""
    for document, text in texts.items():
        left = list(text)
        for each in found:
            if each.passage.document == document:
                for begin, end in each.passage.spans:
                    left[begin:end] = " " * (end - begin)
        lines = [line.strip() for line in "".join(left).splitlines()]
        words = [line for line in lines if any(map(str.isalnum, line)) and not line.strip(" #.").isdigit()]
        assert set(words) <= {"```python", "In [None]:"}


@pytest.mark.parametrize(
    ("document", "after", "line", "text"),
    [
        ("000", "使用GPU来训练", "Nobody has checked this.", "Nobody has checked this."),
        ("000", "optimizer = AdamW(model.parameters(), lr=5e-5)", "optimizer.step(closure)", "optimizer.step(closure)"),
        ("001", "每500步告诉一次损失", "它也不保存模型。", "它也不保存模型。"),
        ("002", "they should be in the same ballpark", "Train longer.", "Train longer."),
        ("004", "loss.backward()", "# clip the gradients", "clip the gradients"),
    ],
)
def test_one_passage_more_is_missing(document: str, after: str, line: str, text: str, texts: dict[str, str]) -> None:
    """As in another edition of a document: the line stands below the first that has some words."""
    lines = texts[document].splitlines(keepends=True)
    at = next(number for number, each in enumerate(lines) if after in each)
    more = texts | {document: "".join([*lines[: at + 1], f"{line}\n", *lines[at + 1 :]])}
    assert [each.passage.text for each in indexed(CLAIMS.values(), more) if each.missing] == [text]
