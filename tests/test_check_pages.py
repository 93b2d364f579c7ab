"""Every check has its page, and docs/checks says what the checks say."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from harness import catalogue
from harness.compare.differences import Cause, CompareReport
from harness.resume.run import ResumeReport
from harness.watch.script import CheckReport
from scripts.check_pages import DOCS, files


def test_the_pages_are_those_of_the_checks() -> None:
    """``python -m scripts.check_pages`` writes them anew."""
    written = {path for path in DOCS.rglob("*") if path.is_file()}
    assert written == set(files())
    for path, text in files().items():
        assert path.read_text(encoding="utf-8") == text, path


@pytest.mark.parametrize("page", catalogue.explain(), ids=lambda page: page["id"])
def test_a_page_says_something_in_every_section(page: dict[str, object]) -> None:
    for key in ("statement", "why", "remedy", "right_when"):
        text = page[key]
        assert isinstance(text, str)
        assert text.endswith((".", "`", "```")), key
        assert len(text.split()) >= 5, key
    assert "\n" not in str(page["statement"])


def test_the_schema_describes_a_report() -> None:
    schema = json.loads((DOCS / "report.schema.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) == set(CheckReport("train.py").as_dict())
    assert schema["$defs"]["Finding"]["properties"]["check"]["enum"] == list(catalogue.checks())
    schema = json.loads((DOCS / "resume.schema.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) == set(ResumeReport("train.py").as_dict())
    assert schema["$defs"]["Finding"]["properties"]["check"]["enum"] == list(catalogue.losses())
    schema = json.loads((DOCS / "compare.schema.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) == set(CompareReport("a.py", "b.py").as_dict())
    assert set(schema["$defs"]["Difference"]["properties"]["cause"]["enum"]) == set(get_args(Cause))
