"""What a claim has a document say is looked up in the document's own text, in the section that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.documented_run.claims import ALL, PARTS, TITLES, Citation, Claim
from harness.documented_run.documents.citations import line_of, looked_up, part
from harness.documented_run.stages import CLAIMS
from harness.errors import CannotTry

TEXT = """## Prepare for training
optimizer = AdamW(model.parameters(),
lr=5e-5)
1377
## Training loop
model.train()
for epoch in range(num_epochs):
    loss.backward()

    optimizer.step()
## Evaluation loop
model.eval()
"""


@pytest.fixture(scope="session")
def documents() -> Path:
    """The folder with the five documents, which are not part of the project."""
    folder = os.environ.get("HARNESS_DOCUMENTS")
    if not folder:
        pytest.skip("needs HARNESS_DOCUMENTS")
    return Path(folder)


@pytest.fixture(scope="session")
def texts(documents: Path) -> dict[str, str]:
    return {name: next(documents.glob(f"{name}*")).read_text(encoding="utf-8") for name in ALL}


@pytest.mark.parametrize(
    ("section", "words", "line"),
    [
        (TITLES["preparing"], "AdamW(model.parameters(), lr=5e-5)", 2),
        (TITLES["preparing"], "AdamW( … 1377", 2),
        (TITLES["training-loop"], "loss.backward() optimizer.step()", 8),
        (TITLES["training-loop"], "AdamW(", None),
        (TITLES["training-loop"], "model.eval()", None),
        (TITLES["training-loop"], "optimizer.step() … loss.backward()", None),
        (TITLES["training-loop"], "Model.train()", None),
        (TITLES["preparing"], "137", 4),
        (TITLES["preparing"], "", None),
    ],
)
def test_words_are_looked_for_in_their_section(section: str, words: str, line: int | None) -> None:
    assert line_of(Citation("003", section, words), TEXT) == line


def test_another_text_is_refused() -> None:
    with pytest.raises(CannotTry, match=r"no line that begins with '## Evaluation loop'.*another text"):
        part("003", TITLES["evaluation-loop"], TEXT.replace("## Evaluation", "## Test"))
    with pytest.raises(CannotTry, match="document 000 has no section 'Processing the data: dynamic padding'"):
        part("000", "Processing the data: dynamic padding", TEXT)


def test_a_folder_without_the_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"document 000: expected one file 000\*.txt or 000\*.md in .*, found none"):
        list(looked_up([], tmp_path))


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_every_document_named_is_cited(claim: Claim) -> None:
    for citation in claim.citations:
        assert citation.words, f"{claim.id} names document {citation.document} and cites nothing of it"
        assert citation.document in PARTS[citation.section]
    assert isinstance(claim.words, str) or claim.words.keys() == set(claim.documents)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_documents_say_it(claim: Claim, documents: Path) -> None:
    assert [each for each in looked_up([claim], documents) if each.line is None] == []


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_no_other_document_says_it_in_these_words(claim: Claim, texts: dict[str, str]) -> None:
    """Whoever reads the claim learns of every document that has it."""
    said = {citation.words for citation in claim.citations if citation.section == claim.section}
    unnamed = PARTS[claim.section].keys() - {citation.document for citation in claim.citations}
    also = {name for name in unnamed for words in said if line_of(Citation(name, claim.section, words), texts[name])}
    assert not also


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_what_is_expected_is_cited_or_derived(claim: Claim) -> None:
    cited = " ".join(citation.words for citation in claim.citations)
    figures = {float(each) for each in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", cited)}
    missing = [
        value
        for value in _values(claim.expected)
        if (value not in figures if isinstance(value, int | float) else value not in cited)
    ]
    assert not missing or claim.derived, f"{claim.id} expects {missing}, which no document is cited for"


def _values(expected: Any) -> Iterator[Any]:
    """The single values in what a claim expects."""
    if isinstance(expected, dict):
        for value in expected.values():
            yield from _values(value)
    elif isinstance(expected, list | tuple | set):
        for value in expected:
            yield from _values(value)
    elif expected is not None:
        yield expected


def test_sections_are_where_they_should_be(texts: dict[str, str]) -> None:
    """In the course's order, none empty; only the summary of the preprocessing may lie in another section."""
    for name, text in texts.items():
        bounds = [part(name, section, text) for section in PARTS if name in PARTS[section]]
        assert all(begin < end for begin, end in bounds)
        assert [begin for begin, _ in bounds[-3:]] == sorted(begin for begin, _ in bounds[-3:])
