"""What scripts.described makes of the pairs of the corpus."""

from __future__ import annotations

import ast
import json
from typing import Any

from scripts.described import NAMES, PAGE, RECORD, differing, harmless, pairs, sentence, table
from tests.checks.corpus import FOLDER

SCRIPT = """
import torch
from torch.utils.data import DataLoader
rows = torch.arange(8.0)
for batch in DataLoader(rows, batch_size=2):
    batch.sum()
"""


def test_each_family_of_checks_has_a_rule() -> None:
    families = {folder.name for folder in FOLDER.iterdir() if folder.is_dir() and any(folder.glob("*/bad.py"))}
    assert families == NAMES.keys()


def test_each_bug_stands_beside_the_same_script_without_it() -> None:
    found = list(pairs())
    assert len(found) > 300
    assert all(pair.bug.text != pair.right.text for pair in found)
    assert any(pair.kind == "unseen" for pair in found)
    assert len({pair.name for pair in found}) == len(found)


def test_keys_differ_where_one_is_missing_or_another() -> None:
    assert differing({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "d": 4}) == ["b", "c", "d"]


def test_harmless_edits_are_programs_that_do_the_same() -> None:
    edits = dict(harmless(SCRIPT))
    assert set(edits) == {
        "lines before it",
        "written anew",
        "a print in each loop",
        "two workers",
        "a variable renamed",
    }
    for text in edits.values():
        ast.parse(text)
    assert "rows_again" in edits["a variable renamed"]
    assert "num_workers=2" in edits["two workers"]


def test_the_page_has_the_table_of_the_record() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    found = {each["name"]: each for each in record["pairs"]}
    page = PAGE.read_text(encoding="utf-8")
    assert table(found) in page
    assert sentence(found, record["harmless"]) in page


def test_the_table_counts_by_family() -> None:
    each: dict[str, Any] = {"family": "rows", "kind": "seen", "sections": ["data"], "numbers": True}
    found = {
        "a": each,
        "b": each | {"sections": []},
        "c": each | {"kind": "unseen", "sections": ["loss"]},
    }
    assert "| rows | 3 | 2 | 1 | 1 | 1 | 1 |" in table(found)
    assert "| **all** | 3 | 2 | 1 | 1 | 1 | 1 |" in table(found)
