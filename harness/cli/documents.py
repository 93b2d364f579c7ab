"""``harness documents``"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from harness.cli.options import FOUND, check_json, chosen_recipe, echo, run_folder, source_options


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@source_options
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where documents.json goes. [default: runs/documents-TIME]",
)
def documents(folder: Path, output: Path | None, **options: Any) -> None:
    """Run the code blocks of the documents in FOLDER (*.txt, *.md) as they are printed.

    The recipe says with which corpus and tokenizer; the model is a small random BERT, and nothing is fetched. Exit
    status 1 where a block fails as printed.
    """
    recipe = chosen_recipe(**options)

    from harness.documents.run import run_documents
    from harness.files import write_atomically
    from harness.matrix import DOCUMENTS_FILE
    from harness.report import annotations
    from harness.report.documents import block_line, outcome_lines
    from harness.run import quiet_libraries

    output = output or run_folder("documents")
    with suppress(OSError):  # which check_json says better
        output.mkdir(parents=True, exist_ok=True)
    check_json(output / DOCUMENTS_FILE)
    quiet_libraries()
    record = run_documents(folder, recipe, on_block=lambda block: click.echo(block_line(block)))
    write_atomically(output / DOCUMENTS_FILE, record.model_dump_json(indent=1) + "\n")
    echo(outcome_lines(record, output))
    for block in record.blocks if annotations.running_in_github_actions() else ():
        echo(annotations.of_block(block, str(folder / block.file)))
    sys.exit(FOUND if any(block.outcome == "fails" for block in record.blocks) else 0)
