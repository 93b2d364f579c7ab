"""The lines of ``harness documents``, and of the claims' citations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.claims import LookedUp
from harness.findings import shortened
from harness.record import BlockOutcome, BlockRecord, DocumentsRecord
from harness.report.terminal import table

SAYS: dict[BlockOutcome, str] = {
    "runs": "runs",
    "deprecated": "runs, deprecated",
    "fails": "FAILS",
    "not applicable": "not applicable",
}


def block_line(block: BlockRecord) -> str:
    """How one block went, with the remedy and what it printed otherwise below it."""
    place = f"{block.document}:{block.number} (line {block.line})"
    lines = [f"{place:<20} {SAYS[block.outcome]:<17} {block.label}"]
    if block.says:
        lines.append(f"    {shortened(block.says)}")
    if block.replacement:
        helps = "" if block.repaired else "; it still fails"
        lines.append(f"    write  {block.replacement}  ({block.source}){helps}")
    if block.prints:
        lines.append(f"    prints {shortened(block.prints)}")
    return "\n".join(lines)


def outcome_lines(record: DocumentsRecord, output: Path) -> Iterator[str]:
    counts = Counter(block.outcome for block in record.blocks)
    parts = [f"{counts[outcome]} {says.lower()}" for outcome, says in SAYS.items() if counts[outcome]]
    otherwise = sum(block.prints is not None for block in record.blocks)
    yield f"{len(record.blocks)} blocks: {'; '.join(parts)}; {otherwise} print otherwise than documented"
    yield f"written to {output}"


def citation_lines(looked: Sequence[LookedUp]) -> Iterator[str]:
    """Where the documents say what each claim says, a line for each document that it names."""
    rows = [("CLAIM", "DOCUMENT", "LINE", "SECTION", "WORDS")]
    for each in looked:
        line = "NOT FOUND" if each.line is None else f"{each.line}"
        words = shortened(each.citation.words, 60)
        rows.append((each.claim, each.citation.document, line, each.citation.section, words))
    yield from table(rows)
    missing = sum(each.line is None for each in looked)
    yield f"{len(looked) - missing} of {len(looked)} citations found"
