"""Every check has its page, and docs/checks says what the checks say."""

from __future__ import annotations

import pytest

from harness import catalogue
from scripts.check_pages import DOCS, SCHEMAS, files
from scripts.record_pages import PAGES


def test_the_pages_are_those_of_the_checks() -> None:
    """``python -m scripts.check_pages`` writes them anew."""
    written = {path for folder in (DOCS, SCHEMAS) for path in folder.rglob("*") if path.is_file()}
    assert written == set(files())
    for path, text in files().items():
        assert path.read_text(encoding="utf-8") == text, path


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_records_can_be_made(name: str) -> None:
    """They are in the site alone."""
    assert PAGES[name]().startswith("# ")


@pytest.mark.parametrize("page", catalogue.explain(), ids=lambda page: page["id"])
def test_a_page_says_something_in_every_section(page: dict[str, object]) -> None:
    for key in ("statement", "why", "remedy", "right_when"):
        text = page[key]
        assert isinstance(text, str)
        assert text.endswith((".", "`", "```")), key
        assert len(text.split()) >= 5, key
    assert "\n" not in str(page["statement"])
