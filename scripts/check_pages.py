"""Write docs/checks, a page for each check, loss and cause and an index; docs/schemas, the JSON schemas of what the
commands write; and docs/account.md, what the account of a run says.

    python -m scripts.check_pages

The pages come from the docstrings and from the checks' examples in tests/checks, which the tests execute. A test holds
the files against what this writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import catalogue
from scripts import account, schemas

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "checks"
SCHEMAS = ROOT / "docs" / "schemas"
ACCOUNT = ROOT / "docs" / "account.md"
EXAMPLES = ROOT / "tests" / "checks"


def files() -> dict[Path, str]:
    """The text of every file below docs/checks and docs/schemas, and of docs/account.md."""
    pages = catalogue.explain()
    written = {DOCS / path_of(page["id"]): page_text(page) for page in pages}
    return {
        DOCS / "README.md": index(pages),
        **written,
        ACCOUNT: account.text(),
        SCHEMAS / "README.md": schemas.index(),
        **{SCHEMAS / f"{name}.schema.json": schemas.text_of(name) for name in schemas.SCHEMAS},
    }


def path_of(check: str) -> str:
    return check.replace("::", "/") + ".md"


def index(pages: list[dict[str, Any]]) -> str:
    lines = [
        "# What the harness can name",
        "",
        f"{len(catalogue.checks())} checks of `harness check`, {len(catalogue.losses())} losses of `harness resume`",
        f"(`resume::`), {len(catalogue.causes())} causes of `harness compare` (`compare::`),",
        f"{len(catalogue.relations())} relations of `harness vary` (`depends::`, `independent::`) and",
        f"{len(catalogue.settings())} faults of settings (`harness vary --settings`, `settings::`). Each has a page",
        "that says why it is a bug, what to do, and when it is not a bug; `harness explain ID` prints it.",
        "A fault with the status *new* has not been tried on much code of others, and is reported as a warning,",
        "whatever its severity.",
    ]
    family = ""
    for page in pages:
        if page["id"].partition("::")[0] != family:
            family = page["id"].partition("::")[0]
            lines += ["", f"## {family}", "", "| id | severity | what is wrong |", "| --- | --- | --- |"]
        severity = page["severity"] + (", new" if page["status"] == "new" else "")
        lines.append(f"| [`{page['id']}`]({path_of(page['id'])}) | {severity} | {page['statement']} |")
    return "\n".join(lines) + "\n"


def page_text(page: Mapping[str, Any]) -> str:
    """One check's page in Markdown, with the examples that its tests execute."""
    formerly = [f"Formerly {', '.join(f'`{name}`' for name in page['formerly'])}.", ""] if page["formerly"] else []
    about = f"Severity: {page['severity']}. Status: {page['status']}, since {page['since']}."
    lines = [f"# {page['id']}", "", about, "", *formerly, page["statement"], ""]
    for title, key in catalogue.SECTIONS.items():
        if not page[key]:
            continue
        content = "\n".join(f"- {each}" for each in page[key]) if isinstance(page[key], list) else page[key]
        lines += [f"## {title}", "", content, ""]
        if key == "why" and page["id"] in catalogue.checks():
            lines += _example(page["id"], "bad", "Example")
        if key == "remedy" and page["id"] in catalogue.checks():
            lines += _example(page["id"], "good", "Write instead")
    return "\n".join(lines).rstrip() + "\n"


def _example(check: str, kind: str, title: str) -> list[str]:
    text = (EXAMPLES / check.replace("::", "/") / f"{kind}.py").read_text(encoding="utf-8").rstrip()
    return [f"### {title}", "", "```python", text, "```", ""]


def main() -> None:
    for folder in (DOCS, SCHEMAS):
        shutil.rmtree(folder, ignore_errors=True)
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
