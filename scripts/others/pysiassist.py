"""PYSIASSIST's snippets of forum posts as programs: what a snippet leaves out is put before, around and after it.

``pysiassist.toml`` has that for each snippet: ``prelude`` gives the names that it uses and does not define, ``loop`` is
a line under which it is repeated where a post shows one update only, ``there`` goes before the first line that fits
``at``, and ``after`` calls what it only defines. Nothing of a snippet is kept here.
"""

from __future__ import annotations

import re
import textwrap
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from harness.errors import CannotTry
from scripts.expectations import Manifest, Program

COMMON = Path(__file__).with_name("pysiassist_prelude.py")
TABLE = Path("dataset", "testing_codes_set.xlsx")
SHEETS = {"p": "Positive Sample", "n": "Negative Sample"}
CODE = "C"

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
OFFICE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def pysiassist(source: Path, folder: Path, manifest: Manifest) -> None:
    """A program a row: ``p024`` is row 24 of the sheet of snippets with a bug, ``n017`` row 17 of the other."""
    table = source / TABLE
    rows = {kind: column(table, sheet, CODE) for kind, sheet in SHEETS.items()}
    common = COMMON.read_text(encoding="utf-8")
    for program in manifest.program:
        kind, number = program.id[0], int(program.id[1:])
        if number not in rows[kind]:
            raise CannotTry(f"{table}: the sheet {SHEETS[kind]!r} has no row {number}, which {program.id} needs")
        text = program_text(common, program, rows[kind][number])
        (folder / program.files[0]).write_text(text, encoding="utf-8")


def program_text(common: str, program: Program, snippet: str) -> str:
    """The snippet with what it leaves out."""
    ours: Mapping[str, str] = program.model_extra or {}
    body = for_a_cpu(snippet)
    if "at" in ours:
        start = re.compile(ours["at"], re.MULTILINE).search(body)
        if start is None:
            raise CannotTry(f"{program.id}: nothing in the snippet fits {ours['at']!r}")
        body = body[: start.start()] + ours["there"].strip("\n") + "\n" + body[start.start() :]
    if "loop" in ours:
        body = ours["loop"].strip() + "\n" + textwrap.indent(body, "    ")
    parts = (common, ours.get("prelude", ""), body, ours.get("after", ""))
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def for_a_cpu(snippet: str) -> str:
    """The snippet as it is, apart from its devices, Python 2, and what a page did to its margin."""
    text = snippet.replace("\r\n", "\n").replace("\xa0", " ").expandtabs(4)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\.cuda\([^()]*\)", "", text)
    text = re.sub(r"(['\"])cuda(:\d+)?\1", r"\1cpu\1", text)
    text = re.sub(r"\b(\w*(?:loss|cost))\.data\[0\]", r"\1.item()", text)
    text = re.sub(r"^([ ]*)print +(?![(=])(\S.*)$", r"\1print(\2)", text, flags=re.MULTILINE)
    return without_empty_calls(margins(textwrap.dedent(text).strip("\n") + "\n"))


def margins(text: str) -> str:
    """With the margin of a line that fits no block made that of the block around it."""
    try:
        compile(text, "snippet", "exec")
    except IndentationError:
        pass
    except SyntaxError:
        return text
    else:
        return text
    lines, open_blocks = [], [0]
    for line in text.split("\n"):
        margin = len(line) - len(line.lstrip())
        if line.strip() and not line.lstrip().startswith("#"):
            if margin > open_blocks[-1]:
                open_blocks.append(margin)
            while margin < open_blocks[-1]:
                open_blocks.pop()
        lines.append(" " * open_blocks[-1] + line.lstrip() if margin != open_blocks[-1] and line.strip() else line)
    return "\n".join(lines)


def without_empty_calls(text: str) -> str:
    """Without the lines that call a function of the snippet by its name alone, where it takes arguments."""
    takes = set(re.findall(r"^def (\w+)\((?=\s*\w)", text, re.MULTILINE))
    return re.sub(r"^(\w+)\(\) *\n", lambda call: "" if call[1] in takes else call[0], text, flags=re.MULTILINE)


def column(table: Path, sheet: str, letter: str) -> dict[int, str]:
    """The texts in a column of a sheet, by the number of the row.

    Raises:
        CannotTry: it is no table, or has no such sheet.
        OSError: there is none.
    """
    try:
        with zipfile.ZipFile(table) as archive:
            files = sheet_files(archive)
            if sheet not in files:
                raise CannotTry(f"{table} has no sheet {sheet!r}; it has {', '.join(sorted(files))}")
            shared = shared_texts(archive)
            cells = part(archive, files[sheet]).iter(f"{MAIN}c")
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError) as error:
        raise CannotTry(f"{table} is no table of the kind .xlsx: {error}") from error
    found = {}
    for cell in cells:
        place = re.fullmatch(rf"{letter}(\d+)", cell.get("r", ""))
        if place is not None:
            value = cell.findtext(f"{MAIN}v")
            if value is None:
                value = text_of(cell)
            elif cell.get("t") == "s":
                value = shared[int(value)]
            found[int(place[1])] = value
    return found


def sheet_files(archive: zipfile.ZipFile) -> dict[str, str]:
    """The file of each sheet, by its name."""
    links = part(archive, "xl/_rels/workbook.xml.rels")
    targets = {link.get("Id"): link.get("Target", "") for link in links}
    sheets = part(archive, "xl/workbook.xml").iter(f"{MAIN}sheet")
    return {
        each.get("name", ""): str(PurePosixPath("/xl", targets[each.get(f"{OFFICE}id")])).lstrip("/") for each in sheets
    }


def shared_texts(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    items = part(archive, "xl/sharedStrings.xml").findall(f"{MAIN}si")
    return [text_of(item) for item in items]


def part(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """A file of the table. (It is a copy at a commit that the expectations name.)"""
    return ElementTree.fromstring(archive.read(name))  # noqa: S314


def text_of(element: ElementTree.Element) -> str:
    return "".join(each.text or "" for each in element.iter(f"{MAIN}t"))
