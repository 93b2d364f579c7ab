"""``harness documents``"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.options import (
    FOUND,
    chosen_recipe,
    examples,
    format_option,
    interruptible,
    run_folder,
    source_options,
)
from harness.cli.output import Format, Output, check_replaceable, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.documented_run.documents.collect import Document
    from harness.documented_run.documents.rewrite import Fix, Rewritten
    from harness.documented_run.record import DocumentsRecord


@click.command(
    short_help="Run the code blocks of documents as printed.",
    epilog=examples("harness documents docs", "harness documents --diff docs/training.md"),
)
@click.argument("place", type=click.Path(path_type=Path), metavar="FOLDER|FILE")
@source_options
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Interrupt a block that takes longer; it counts as failing.",
)
@click.option("--diff", is_flag=True, help="Print working replacements as a patch; everything else goes to stderr.")
@click.option("--fix", is_flag=True, help="Write working replacements into the documents.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder for documents.json. [default: runs/documents-TIME]",
)
@format_option
@interruptible
def documents(
    place: Path, output: Path | None, timeout: float, diff: bool, fix: bool, format_: Format, **options: Any
) -> None:
    """Run the code blocks of documents (*.md, *.mdx, *.ipynb, *.txt) as they are printed.

    The blocks are executed, with your rights and without a sandbox: run only documents that you trust. They do not see
    your tokens or your other environment variables, and they work in a folder that is removed afterwards.

    The recipe chooses the corpus and the tokenizer; the model is a small random BERT, and nothing is downloaded.

    Exit status: 0 every block runs as printed, 1 one fails (with --fix: one fails and was not replaced).
    """
    recipe = chosen_recipe(**options)
    if diff and format_ != "text":
        raise click.UsageError(f"--diff and --format {format_} both write to stdout: give one of them.")
    out = Output(format=format_, taken=diff)

    from tqdm import tqdm

    from harness.documented_run.documents.collect import read_documents
    from harness.documented_run.documents.run import run_documents
    from harness.documented_run.matrix import DOCUMENTS_FILE
    from harness.documented_run.run import quiet_libraries
    from harness.files import claimed_folder, write_atomically
    from harness.report import log
    from harness.report.documents import outcome_lines, row_lines

    found = read_documents(place)
    output = output or run_folder("documents")
    file = output / DOCUMENTS_FILE
    check_replaceable(file)
    quiet_libraries()

    def keep(record: DocumentsRecord) -> None:
        write_atomically(file, record.model_dump_json(indent=1) + "\n")

    interval = 0.1 if sys.stderr.isatty() else 10
    with claimed_folder(output), tqdm(total=len(found), unit="file", mininterval=interval) as bar:

        def through(document: Document) -> None:
            bar.set_postfix_str(document.file, refresh=False)
            bar.update()

        record, fixes = run_documents(found, recipe, timeout=timeout, on_block=keep, on_document=through)
        keep(record)
    out.echo(row_lines(record))
    out.echo(outcome_lines(record, output))
    paths = {each.file: each.path for each in found}
    out.write(record.model_dump_json(indent=1), lambda: log.of_documents(record, paths))
    if record.interrupted:
        kept = "; no document was changed" if fix else ""
        raise CannotTry(f"interrupted; the results so far are in {file}{kept}")
    replaced = _replace(fixes, paths, out, diff=diff, fix=fix) if diff or fix else 0
    failing = sum(block.outcome == "fails" for block in record.blocks) - (replaced if fix else 0)
    sys.exit(FOUND if failing else 0)


def _replace(fixes: Sequence[Fix], paths: dict[str, Path], out: Output, *, diff: bool, fix: bool) -> int:
    """Print and write the documents with the fixes; how many blocks that were."""
    from harness.files import diff_lines, write_atomically
    from harness.report.documents import fix_lines

    replaced = documents = 0
    left: list[str] = []
    for count, changed in _rewritten(fixes, paths):
        left += [f"{block.document}:{block.number}" for block in changed.left]
        if changed.before == changed.after:
            continue
        if diff:
            say("".join(diff_lines(changed.before, changed.after, _below_here(changed.path))), nl=False)
        if fix:
            try:
                write_atomically(changed.path, changed.after)
            except OSError as error:
                raise CannotTry(f"{changed.path} cannot be written ({error.strerror}); it is unchanged") from error
            replaced, documents = replaced + count, documents + 1
    out.echo(fix_lines(replaced, documents, left))
    return replaced


def _rewritten(fixes: Sequence[Fix], paths: dict[str, Path]) -> Iterator[tuple[int, Rewritten]]:
    """Each document with its fixes, and how many of them could be written."""
    from harness.documented_run.documents.rewrite import rewritten

    for file, group in groupby(fixes, key=lambda each: each.block.file):
        of_document = sorted(group, key=lambda each: each.block.number)
        try:
            changed = rewritten(paths[file], of_document)
        except (OSError, ValueError) as error:
            raise CannotTry(f"document {paths[file]} cannot be read any more ({error}); run it again") from error
        yield len(of_document) - len(changed.left), changed


def _below_here(path: Path) -> str:
    """A file as a patch names it: from the working directory, if it lies there."""
    path = path.resolve()
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path.relative_to(path.anchor)).as_posix()
