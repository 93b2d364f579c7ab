"""Write docs/checks, a page for each family of checks, losses and causes and an index; and docs/schemas, the JSON
schemas of what the commands write.

    python -m scripts.check_pages

The pages come from the docstrings and from the checks' examples in tests/checks, which the tests execute. A test holds
the files against what this writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from harness import catalogue
from harness.watch.windows import judging
from scripts import schemas

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "checks"
SCHEMAS = ROOT / "docs" / "schemas"
EXAMPLES = ROOT / "tests" / "checks"


def files() -> dict[Path, str]:
    """The text of every file below docs/checks and docs/schemas."""
    pages = catalogue.explain()
    families = groupby(pages, key=lambda page: family_of(page["id"]))
    return {
        DOCS / "README.md": index(pages),
        **{DOCS / f"{family}.md": family_page(family, list(members)) for family, members in families},
        SCHEMAS / "README.md": schemas.index(),
        **{SCHEMAS / f"{name}.schema.json": schemas.text_of(name) for name in schemas.SCHEMAS},
    }


def family_of(fault: str) -> str:
    return fault.partition("::")[0]


def name_of(fault: str) -> str:
    return fault.partition("::")[2]


def index(pages: list[dict[str, Any]]) -> str:
    """The page that lists the families; their own pages list what is in them."""
    kinds = {
        "check": "`harness check`",
        **{family_of(name): "`harness resume`" for name in catalogue.losses()},
        **{family_of(name): "`harness compare`" for name in catalogue.causes()},
        **{family_of(name): "`harness vary`" for name in catalogue.relations()},
        "settings": "`harness vary --settings`, `harness check`",
    }
    lines = [
        "# What the harness can name",
        "",
        "Each fault has an id, `FAMILY::NAME`. The page of its family says why it is a bug, what to do, and when it is",
        "not a bug. `harness explain` lists all faults; `harness explain ID` prints what the page says of one. A fault",
        "with the status *new* has not been tried on much code of others, and is reported as a warning, whatever its",
        "severity.",
        "",
        "| family | what names its faults |",
        "| --- | --- |",
    ]
    for family in sorted({family_of(page["id"]) for page in pages}):
        lines.append(f"| [{family}]({family}.md) | {kinds.get(family, kinds['check'])} |")
    return "\n".join(lines) + "\n"


def family_page(family: str, pages: list[dict[str, Any]]) -> str:
    """All faults of a family in Markdown: a table, then a section for each."""
    lines = [f"# {family}", "", "| id | severity | what is wrong |", "| --- | --- | --- |"]
    for page in pages:
        severity = page["severity"] + (", new" if page["status"] == "new" else "")
        lines.append(f"| [`{page['id']}`](#{name_of(page['id'])}) | {severity} | {page['statement']} |")
    return "\n".join([*lines, "", *(line for page in pages for line in section(page))]).rstrip() + "\n"


def section(page: Mapping[str, Any]) -> Iterator[str]:
    """One fault, with the examples that its tests execute."""
    check = catalogue.checks().get(page["id"])
    formerly = f" Formerly {', '.join(f'`{name}`' for name in page['formerly'])}." if page["formerly"] else ""
    yield from (f"## {name_of(page['id'])}", "", page["statement"], "")
    yield f"`{page['id']}`. Severity: {page['severity']}. Status: {page['status']}, since {page['since']}.{formerly}"
    if check is not None and (windows := _windows(check)):
        yield f"In a training that is watched in windows ([callbacks](../callbacks.md)): {windows}."
    yield ""
    for title, key in catalogue.SECTIONS.items():
        if not page[key]:
            continue
        content = "\n".join(f"- {each}" for each in page[key]) if isinstance(page[key], list) else page[key]
        yield from (f"**{title}**", "", content, "")
        if key == "why" and check is not None:
            yield from _example(page["id"], "bad", "Example")
        if key == "remedy" and check is not None:
            yield from _example(page["id"], "good", "Write instead")


def _windows(check: type[catalogue.Fault]) -> str:
    words = {"all": "looks in every window", "first": "looks in the first window"}
    return next((words[which] for which in ("all", "first") if check.id in judging(which)), "")


def _example(check: str, kind: str, title: str) -> list[str]:
    text = (EXAMPLES / check.replace("::", "/") / f"{kind}.py").read_text(encoding="utf-8").rstrip()
    return [f"**{title}**", "", "```python", text, "```", ""]


def main() -> None:
    for folder in (DOCS, SCHEMAS):
        shutil.rmtree(folder, ignore_errors=True)
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
