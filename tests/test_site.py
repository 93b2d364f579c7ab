"""The documents as a site, and a notebook among them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import catalogue
from harness.documented_run.record import DocumentsRecord
from tests.server import server_of

ROOT = Path(__file__).parent.parent
# What a page loads by itself, from elsewhere; a link that a reader may follow is none.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src="https?://|<link[^>]+rel="(?!canonical)[^>]+href="https?://"""
)


def _build(folder: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    pytest.importorskip("material", reason="the extra site is not installed")
    # Not --quiet: what is not logged does not count as a warning, on which a strict build ends.
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(config), "--site-dir", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = _build(folder)
    assert done.returncode == 0, done.stderr  # it is strict: a link that leads nowhere ends it
    return folder


def test_the_site_finds_each_check_also_where_it_was(site: Path) -> None:
    places = {entry["location"] for entry in json.loads((site / "search" / "search_index.json").read_text())["docs"]}
    for check in catalogue.faults():
        family, _, name = check.partition("::")
        assert f"checks/{family}.html#{name}" in places
        assert f"../{family}.html#{name}" in (site / "checks" / family / f"{name}.html").read_text(encoding="utf-8")


def test_no_page_of_the_site_loads_anything_from_elsewhere(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if page.name != "sample-report.html"]
    assert len(pages) > len(catalogue.checks())
    assert [page for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []


def test_every_link_of_the_site_leads_to_a_file_of_it(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in re.findall(r'href="(?!https?:|#|mailto:|data:)([^"#]+)', page.read_text(encoding="utf-8")):
            if page.name != "404.html":  # whose links begin at the server's root
                assert (page.parent / link).exists(), f"{page.relative_to(site)}: {link}"


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[nowhere](nowhere.md)\n", encoding="utf-8")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[0]
    config = config.replace("scripts/site_pages.py", "hooks.py")
    (tmp_path / "hooks.py").write_text("", encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    done = _build(tmp_path / "site", tmp_path / "mkdocs.yml")
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr


NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_notebook_prints_what_it_has_stored(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """But for the place: Jupyter numbers cells in which code is, and documents have blocks."""
    done = server_of(pytestconfig).run(tmp_path, "documents", str(NOTEBOOK), "--output", "found")
    blocks = DocumentsRecord.model_validate_json((tmp_path / "found" / "documents.json").read_text()).blocks
    assert [(block.outcome, block.says) for block in blocks] == [("runs", None)] * 4
    assert [block.prints for block in blocks] == [None, None, "where     document notebook, block 2:9, update 2", None]
    assert done.status == 0


def test_harness_check_names_the_cell_and_the_line_of_the_notebook(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    done = server_of(pytestconfig).run(tmp_path, "check", str(NOTEBOOK))
    assert done.status == 1
    assert "gradients::not-cleared" in done.stderr
    assert "Cell In[2], line 9, update 2" in done.stderr
