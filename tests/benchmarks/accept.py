"""Compare recorded benchmarks with those that they would replace, and accept them.

    python -m tests.benchmarks.accept [NAME] [--reason "..."]

says of each benchmark of the candidate NAME (throughput-cpu, if nobody says) whether it is as fast as before. With a
reason the candidate becomes what later benchmarks are compared with.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.documented_run.baseline.files import baseline_path, candidate_path
from tests.benchmarks.recorded import RECORDS, Throughput, accept, compare_candidate, name_of


@click.command()
@click.argument("name", default=name_of("cpu"))
@click.option("--reason", help="Why it is accepted; kept in the file.")
@click.option("--folder", type=click.Path(path_type=Path), default=RECORDS, help="Where it was recorded.")
def main(name: str, reason: str | None, folder: Path) -> None:
    """Compare a candidate, and accept it where a reason is given; status 1 if it is slower and there is none."""
    candidate, path = Throughput.read(candidate_path(folder, name)), baseline_path(folder, name)
    verdicts = compare_candidate(Throughput.read(path), candidate) if path.exists() else []
    for verdict in verdicts:
        click.echo("\n".join(verdict.lines()))
    if reason is not None:
        click.echo(f"accepted as {accept(folder, name, reason)}")
    elif any(verdict.outcome == "fails" for verdict in verdicts):
        sys.exit(1)


if __name__ == "__main__":
    main()
