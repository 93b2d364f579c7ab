"""The lines of ``harness documents``, and of the documents' index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from harness.documented_run.claims import LookedUp
from harness.documented_run.documents.index import Indexed, Kind
from harness.documented_run.record import BlockOutcome, BlockRecord, DocumentsRecord
from harness.files import StrictModel
from harness.findings import shortened
from harness.report.terminal import table

SAYS: dict[BlockOutcome, str] = {
    "runs": "runs",
    "deprecated": "runs, deprecated",
    "fails": "FAILS",
    "not applicable": "not applicable",
}


class CitationShown(StrictModel):
    """Where a document says what a claim says."""

    claim: str
    document: str
    line: int | None
    """None where the document does not say it."""
    section: str
    words: str


class PassageShown(StrictModel):
    """A sentence, statement of code, comment or printed output, and what stands for it."""

    document: str
    line: int
    kind: Kind
    text: str
    claims: list[str]
    reason: str | None
    """Why no claim stands for it; null where one does, or where it is missing."""


class CitationsShown(StrictModel):
    """What ``harness claims --documents`` looks up."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    citations: list[CitationShown]
    passages: list[PassageShown]


def row_lines(record: DocumentsRecord) -> Iterator[str]:
    """A row for each piece of code that came out in one way, with all places at which documents have it."""
    rows: dict[tuple[object, ...], list[BlockRecord]] = {}
    for block in record.blocks:
        came_out = (block.outcome, block.says, block.replacement, block.repaired, block.prints)
        rows.setdefault((block.key, *came_out), []).append(block)
    for blocks in rows.values():
        yield from _row(blocks)


def _row(blocks: Sequence[BlockRecord]) -> Iterator[str]:
    """How one block went, with the remedy and what it printed otherwise below it."""
    block, *others = blocks
    seconds = sum(each.seconds or 0 for each in blocks)
    took = f"  [{seconds:.1f} s]" if seconds >= 1 else ""
    place = f"{block.document}:{block.number} ({f'cell {block.cell}' if block.cell else f'line {block.line}'})"
    yield f"{place:<20} {SAYS[block.outcome]:<17} {block.label}{took}"
    if block.says:
        yield f"    {shortened(block.says)}"
    if block.replacement:
        helps = "" if block.repaired else "; it still fails"
        yield f"    write  {block.replacement}  ({block.source}){helps}"
    if block.prints:
        yield f"    prints {shortened(block.prints)}"
    if others:
        yield f"    also   {', '.join(f'{each.document}:{each.number}' for each in others)}"


def outcome_lines(record: DocumentsRecord, output: Path) -> Iterator[str]:
    counts = Counter(block.outcome for block in record.blocks)
    parts = [f"{counts[outcome]} {says.lower()}" for outcome, says in SAYS.items() if counts[outcome]]
    otherwise = sum(block.prints is not None for block in record.blocks)
    yield f"{len(record.blocks)} blocks: {'; '.join(parts)}; {otherwise} print something other than documented"
    executed = sum(block.seconds is not None for block in record.blocks)
    copies = sum(block.same_as is not None for block in record.blocks)
    yield (
        f"{executed} were executed, {copies} are copies of these; {len(record.seconds)} documents in "
        f"{sum(record.seconds.values()):.1f} s"
    )
    yield f"written to {output}"


def fix_lines(written: int, documents: int, left: Sequence[str]) -> Iterator[str]:
    if written:
        yield f"replaced {written} blocks in {documents} documents"
    for place in left:
        yield f"{place}: not changed: its lines are not those that were executed; write the replacement by hand"


def index_lines(indexed: Sequence[Indexed], looked: Sequence[LookedUp]) -> Iterator[str]:
    """What stands for each passage, a line for each, and the citations that no document has."""
    rows = [("DOCUMENT", "LINE", "KIND", "SAYS", "CLAIMS")]
    for entry in indexed:
        passage = entry.passage
        stands = ", ".join(entry.claims) or ("MISSING" if entry.reason is None else f"no claim: {entry.reason}")
        rows.append((passage.document, f"{passage.line}", passage.kind, shortened(passage.text, 60), stands))
    yield from table(rows)
    not_found = [each for each in looked if each.line is None]
    for lost in not_found:
        cited = lost.citation
        yield f"{lost.claim}: document {cited.document} does not have {cited.words!r} in its section {cited.section!r}"
    claimed, missing = sum(bool(each.claims) for each in indexed), sum(each.missing for each in indexed)
    yield (
        f"{len(indexed)} passages: {claimed} with a claim, {len(indexed) - claimed - missing} with a reason for none, "
        f"{missing} missing; {len(looked) - len(not_found)} of {len(looked)} citations found"
    )


def index_json(indexed: Sequence[Indexed], looked: Sequence[LookedUp]) -> str:
    """``harness claims --documents --json``; a citation's ``line`` is null where the document does not say it."""
    citations = [
        CitationShown(
            claim=each.claim,
            document=each.citation.document,
            line=each.line,
            section=each.citation.section,
            words=each.citation.words,
        )
        for each in looked
    ]
    passages = [
        PassageShown(
            document=each.passage.document,
            line=each.passage.line,
            kind=each.passage.kind,
            text=each.passage.text,
            claims=list(each.claims),
            reason=each.reason,
        )
        for each in indexed
    ]
    return CitationsShown(citations=citations, passages=passages).model_dump_json(indent=1)
