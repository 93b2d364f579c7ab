"""Citations: whether each document says what a claim has it say, and in which line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.documented_run.claims import ALL, PARTS, Citation, Claim, LookedUp
from harness.errors import CannotTry


def looked_up(claims: Iterable[Claim], folder: Path) -> Iterator[LookedUp]:
    """Look the citations of all claims up in the documents that lie in a folder as ``000….txt`` to ``004….txt``.

    Raises:
        CannotTry: a document is missing or is no UTF-8 text, or one of its sections is not where it should begin.
    """
    texts = {name: text_of(folder, name) for name in ALL}
    for claim in claims:
        for citation in claim.citations:
            yield LookedUp(claim.id, citation, line_of(citation, texts[citation.document]))


def line_of(citation: Citation, text: str) -> int | None:
    """The line of a document's text in which the cited words begin, from 1; None where its section has them not.

    White space is as good as any other, since some documents lost their indentation; "…" stands for any text.

    Raises:
        CannotTry: the document has no such section.
    """
    found = found_words(citation, text)
    return text.count("\n", 0, found[0][0]) + 1 if found else None


def found_words(citation: Citation, text: str) -> list[tuple[int, int]]:
    """Where the cited words stand in a document's text: begin and end of each part between "…"; none if they do not.

    Raises:
        CannotTry: the document has no such section.
    """
    begin, end = part(citation.document, citation.section, text)
    pattern = ".*?".join(f"({spaced(words)})" for words in citation.words.split("…"))
    found = re.compile(pattern, re.DOTALL).search(text, begin, end) if citation.words else None
    return [] if found is None else [found.span(number) for number in range(1, found.re.groups + 1)]


def part(document: str, section: str, text: str) -> tuple[int, int]:
    """Where a section begins and ends in a document's text, as positions.

    Raises:
        CannotTry: the document has no such section.
    """
    if document not in PARTS.get(section, {}):
        raise CannotTry(f"document {document} has no section {section!r}; it is in {', '.join(PARTS.get(section, ()))}")
    first, after = PARTS[section][document]
    begin = _line_that_begins(first, text, 0)
    end = _line_that_begins(after, text, begin + len(first)) if after and begin >= 0 else len(text)
    if min(begin, end) < 0:
        raise CannotTry(
            f"document {document} has no line that begins with {first if begin < 0 else after!r}, which bounds its "
            f"section {section!r}: it is another text than the claims were read from"
        )
    return begin, end


def _line_that_begins(words: str, text: str, position: int) -> int:
    found = re.compile(rf"^[ \t]*{re.escape(words)}", re.MULTILINE).search(text, position)
    return found.start() if found else -1


def spaced(words: str) -> str:
    """A pattern of these words, with any white space between them."""
    return r"\s+".join(map(re.escape, words.split()))


def text_of(folder: Path, name: str) -> str:
    """The text of one document in a folder.

    Raises:
        CannotTry: it is missing, or is no UTF-8 text.
    """
    paths = sorted(path for path in folder.glob(f"{name}*") if path.suffix in (".txt", ".md"))
    if len(paths) != 1:
        found = ", ".join(path.name for path in paths) or "none"
        raise CannotTry(f"document {name}: expected one file {name}*.txt or {name}*.md in {folder}, found {found}")
    try:
        return paths[0].read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotTry(f"document {paths[0]} cannot be read ({error}); expected UTF-8 text") from error
