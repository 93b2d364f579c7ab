"""The index of a document: each sentence, statement of code, comment and printed output, and what stands for it.

A claim stands for what its citations quote; code and output also where they are printed again. What no claim is for has
a reason (:data:`harness.documented_run.claims.WITHOUT_CLAIM`), or is missing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from harness.documented_run.claims import ALL, TRANSLATED, WITHOUT_CLAIM, Claim, WithoutClaim
from harness.documented_run.documents.blocks import CELL, FENCE, RULE, stretches
from harness.documented_run.documents.citations import found_words, spaced, text_of

Kind = Literal["sentence", "code", "comment", "output"]

HAN = re.compile(r"[\u4e00-\u9fff]")

_NOT_TEXT = re.compile(rf"{FENCE.pattern}|{CELL.pattern}|{RULE.pattern}|^\s*(\d+|-{{3,}})\s*$")
"""Lines without a sentence: a fence, the head of a cell, a rule, and the number of a line of code."""

_MARK = re.compile(r"(?:[ \t]*(?:#+|[-*+•>]|\d+\.)(?=[ \t]))*[ \t]*#*")
"""What begins a heading, an item of a list, a quotation and a comment."""

_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")  # noqa: RUF001

_ENDS = (".", "!", "?", ":", "。", "！", "？", "：")  # noqa: RUF001

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(frozen=True)
class Passage:
    """One thing that a document says, shows or prints."""

    document: str
    line: int
    """Line in which it begins, counted from 1."""
    kind: Kind
    text: str
    spans: tuple[tuple[int, int], ...]
    """Where it stands in the document's text: begin and end of each of its lines."""

    @property
    def key(self) -> str:
        """Equal for the same code or output elsewhere: in another layout, or with the mark of a list of changes."""
        text = re.sub(r"^[-+]\s", "", self.text) if self.kind == "code" else self.text
        return re.sub(r"\s|,(?=\s*[)\]}])", "", text)


@dataclass(frozen=True)
class Indexed:
    """A passage, and what stands for it."""

    passage: Passage
    claims: tuple[str, ...] = ()
    """The ids of its claims."""
    reason: str | None = None
    """Why it has none; None where it has some, or where it is missing."""

    @property
    def missing(self) -> bool:
        return not self.claims and self.reason is None


def index(claims: Iterable[Claim], folder: Path) -> list[Indexed]:
    """Every passage of the documents that lie in a folder as ``000….txt`` to ``004….txt``, in order.

    Raises:
        CannotTry: as :func:`harness.documented_run.documents.citations.looked_up`.
    """
    texts = {name: text_of(folder, name) for name in ALL}
    return indexed(claims, texts)


def indexed(
    claims: Iterable[Claim], texts: Mapping[str, str], reasons: Sequence[WithoutClaim] = WITHOUT_CLAIM
) -> list[Indexed]:
    """Index as :func:`index` makes it, for texts by document."""
    all_passages = [each for document, text in texts.items() for each in passages(document, text)]
    standing = _claims_of(claims, texts, all_passages)
    return [
        Indexed(each, tuple(standing[at]))
        if standing[at]
        else Indexed(each, reason=why_none(all_passages[:at], each, reasons))
        for at, each in enumerate(all_passages)
    ]


def _claims_of(
    claims: Iterable[Claim], texts: Mapping[str, str], all_passages: Sequence[Passage]
) -> list[dict[str, None]]:
    """The claims of each passage: those that quote it, or the same code or output elsewhere."""
    quoted: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for claim in claims:
        for citation in claim.citations:
            for begin, end in found_words(citation, texts[citation.document]):
                quoted[citation.document].append((begin, end, claim.id))
    standing: list[dict[str, None]] = [
        {
            name: None
            for begin, end, name in quoted[each.document]
            if any(begin < last and first < end for first, last in each.spans)
        }
        for each in all_passages
    ]
    alike: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for passage, found in zip(all_passages, standing, strict=True):
        if passage.kind in ("code", "output"):
            alike[passage.kind, passage.key] |= found
    return [found | alike.get((each.kind, each.key), {}) for each, found in zip(all_passages, standing, strict=True)]


def why_none(before: Sequence[Passage], passage: Passage, reasons: Sequence[WithoutClaim]) -> str | None:
    """The reason for which no claim is for a passage; None where there is none."""
    for reason in reasons:
        if (
            reason.kind in (None, passage.kind)
            and passage.document in reason.documents
            and any(says(passage, words) for words in reason.words)
        ):
            return reason.why
    if passage.document in TRANSLATED and passage.kind == "sentence" and HAN.search(passage.text):
        above = next((each for each in reversed(before) if each.line < passage.line), None)
        if above is not None and above.kind == "sentence" and not HAN.search(above.text):
            return TRANSLATED[passage.document]
    return None


def says(passage: Passage, words: str) -> bool:
    """Whether a passage has these words and no others; "…" stands for any."""
    text = re.sub(r"^[-+]\s+", "", passage.text) if passage.kind == "code" else passage.text
    return re.fullmatch(r"\s*.*?\s*".join(map(spaced, words.split("…"))), text, re.DOTALL) is not None


def passages(document: str, text: str) -> Iterator[Passage]:
    """Every sentence, statement of code, comment and printed output of a document's text, in order."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found: list[Passage] = []
    taken: set[int] = set()
    for numbers, kind in stretches([line.rstrip("\r\n") for line in lines]):
        taken |= set(numbers)
        spans = [(starts[number - 1], starts[number - 1] + len(lines[number - 1])) for number in numbers]
        parts = _code if kind == "code" else _output if kind == "output" else _prose
        found += parts(document, text, numbers, spans)
    left = [number for number in range(1, len(lines) + 1) if number not in taken]
    spans = [(starts[number - 1], starts[number - 1] + len(lines[number - 1])) for number in left]
    found += _prose(document, text, left, spans)
    yield from sorted(found, key=lambda each: each.spans[0])


Spans = Sequence[tuple[int, int]]


def _stripped(text: str, begin: int, end: int) -> tuple[int, int]:
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    return begin, end


def _passage(document: str, text: str, line: int, kind: Kind, spans: Iterable[tuple[int, int]]) -> Iterator[Passage]:
    kept = tuple((begin, end) for begin, end in (_stripped(text, *each) for each in spans) if begin < end)
    if kept:
        text_there = "\n".join(text[begin:end] for begin, end in kept)
        if any(character.isalnum() for character in text_there):
            yield Passage(document, line, kind, text_there, kept)


def _prose(document: str, text: str, numbers: Sequence[int], spans: Spans) -> Iterator[Passage]:
    """The sentences of lines; one that goes on in the next line is one sentence."""
    sentences: list[tuple[int, list[tuple[int, int]]]] = []
    last = -1
    for number, (begin, end) in zip(numbers, spans, strict=True):
        line = text[begin:end].rstrip()
        if not line or _NOT_TEXT.match(line):
            continue
        open_before = last == number - 1 and not text[slice(*sentences[-1][1][-1])].rstrip().endswith(_ENDS)
        goes_on = open_before and re.match(r"[a-z`]", line) is not None
        at = begin + (0 if goes_on else len(_MARK.match(line)[0]))  # type: ignore[index]
        bounds = [at, *(match.end() for match in _END.finditer(text, at, begin + len(line))), end]
        found = [(number, [span]) for span in pairwise(bounds)]
        if goes_on:
            sentences[-1][1].append(found.pop(0)[1][0])
        sentences += found
        last = number
    for number, parts in sentences:
        yield from _passage(document, text, number, "sentence", parts)


def _commented(line: str) -> int:
    """Where the comment of a line of code begins; its length where it has none."""
    plain = _QUOTED.sub(lambda match: "x" * len(match.group()), line)
    return plain.index("#") if "#" in plain else len(line)


def _comments(document: str, text: str, numbers: Sequence[int], spans: Spans) -> Iterator[Passage]:
    for number, (begin, end) in zip(numbers, spans, strict=True):
        at = begin + _commented(text[begin:end])
        while at < end and text[at] in "# ":
            at += 1
        yield from _passage(document, text, number, "comment", [(at, end)])


def _code(document: str, text: str, numbers: Sequence[int], spans: Spans) -> Iterator[Passage]:
    """The statements, each with the lines that its brackets hold together, and the comments."""
    depth, first, parts = 0, 0, list[tuple[int, int]]()
    for number, (begin, end) in zip(numbers, spans, strict=True):
        code = text[begin : begin + _commented(text[begin:end])]
        if not parts:
            first = number
        parts.append((begin, begin + len(code)))
        plain = _QUOTED.sub("", code)
        depth += sum(map(plain.count, "([{")) - sum(map(plain.count, ")]}"))
        if depth <= 0:
            yield from _passage(document, text, first, "code", parts)
            depth, parts = 0, []
    yield from _passage(document, text, first, "code", parts)
    yield from _comments(document, text, numbers, spans)


def _output(document: str, text: str, numbers: Sequence[int], spans: Spans) -> Iterator[Passage]:
    parts = [(begin, begin + _commented(text[begin:end])) for begin, end in spans]
    yield from _passage(document, text, numbers[0], "output", parts)
    yield from _comments(document, text, numbers, spans)
