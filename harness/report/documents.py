"""The lines of ``harness documents``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.findings import shortened
from harness.record import BlockOutcome, BlockRecord, DocumentsRecord

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
