"""What `mkdocs.yml` cannot say of the site: pages that lie beside `docs` or are made of records, links to sources.

A hook of mkdocs (https://www.mkdocs.org/user-guide/configuration/#hooks): `mkdocs build` calls its functions by their
names.
"""

from __future__ import annotations

import posixpath
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Documents that lie beside `docs`, where platforms look for them, and the names that they have in the site.
BESIDE = {"README.md": "index.md", "CHANGELOG.md": "CHANGELOG.md", "SECURITY.md": "SECURITY.md"}
MOVED = '<!doctype html><meta http-equiv="refresh" content="0; url={to}"><a href="{to}">{to}</a>\n'
_LINKED = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s#]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages of the checks, by family, in place of the entry that names their folder; the version in the footer."""
    families = sorted(path.name for path in (DOCS / "checks").glob("*.md") if path.name != "README.md")
    pages = [f"checks/{name}" for name in ("README.md", *families)]
    (entry,) = (each for each in config.nav or () if "checks" in each.values())
    entry.update(dict.fromkeys(entry, pages))
    config.copyright = f"full-training-harness {version('full-training-harness')}, Apache-2.0"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The documents that lie beside `docs`, and those that are made of the records."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(ROOT))
    from scripts.record_pages import PAGES

    for name, page in BESIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for name, made in PAGES.items():
        files.append(File.generated(config, f"{name}.md", content=made()))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Where each fault had a page of its own, a reader is led to its section."""
    from harness import catalogue

    for fault in catalogue.faults():
        family, _, name = fault.partition("::")
        old = Path(config.site_dir, "checks", family, f"{name}.html")
        old.parent.mkdir(exist_ok=True)
        old.write_text(MOVED.format(to=f"../{family}.html#{name}"), encoding="utf-8")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are seen from the site: what is in it is linked, a source file or a folder is named. A search shows
    what is for users first."""
    here = page.file.src_uri
    page.meta.setdefault("search", {"boost": 2 if here.startswith("checks/") else 1})
    source = next((name for name, uri in BESIDE.items() if uri == here), f"docs/{here}")

    def seen_from_here(link: re.Match[str]) -> str:
        text, target, section = link[1], link[2], link[3] or ""
        if not target:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        name = BESIDE.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(name) is not None:
            return f"[{text}]({posixpath.relpath(name, posixpath.dirname(here) or '.')}{section})"
        if path.startswith("docs/"):
            return link[0]  # mkdocs says what is wrong with it
        return text if path in text else f"{text} (`{path}`)"

    return _LINKED.sub(seen_from_here, markdown)
