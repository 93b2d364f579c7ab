"""Run a published set of buggy training programs, and count what ``harness check`` and other tools say of them.

    python -m scripts.others                      # the sets that are known, and where they are
    python -m scripts.others NAME [--from FOLDER] [--rivals FOLDER] [--record]
    python -m scripts.others FOLDER [ID]...       # any folder that is a set as docs/sets.md describes it

Programs are brought from their public address, or taken from a copy (``--from``), and nothing of them is kept.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from harness import __version__
from harness.cli.options import CANNOT_TRY, json_option
from harness.cli.output import check_file, echo
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import shortened
from scripts import scoreboard
from scripts.expectations import Case, Manifest
from scripts.others import page, rivals, sets
from scripts.scoreboard import HARNESS, PLAIN, TOOLS, Asker, Outcome, cases_of
from tests.programs import RECORDS
from tests.server import Server


class CannotBeTried(click.ClickException):
    exit_code = CANNOT_TRY


def known_sets() -> list[str]:
    """A line or two for each set that is known by name."""
    lines = []
    for name in sets.SETS:
        known = sets.expectations(name).set
        lines += [f"{name}: {known.name}, {known.address} at {known.version} ({known.licence})", f"  {known.about}"]
    return lines


def beside_of(folder: Path) -> tuple[str, ...]:
    """The folders of the set that lie in the working directory of each program.

    Raises:
        CannotTry: one is not there.
    """
    manifest = folder / "manifest.toml"
    beside = Manifest.read(manifest).set.beside if manifest.exists() else ()
    for each in beside:
        if not (folder / each).is_dir():
            raise CannotTry(f"there is no folder {folder / each}, which `beside` in {manifest} names")
    return beside


def outcomes_of(
    cases: Sequence[tuple[str, Case]],
    scripts: Path,
    beside: Sequence[str],
    tools: Sequence[str],
    pythons: Mapping[str, Path],
    limit: int,
) -> list[Outcome]:
    """What each tool says of every program; where ``PLAIN`` is among them, only of those that run by themselves."""
    found: list[Outcome] = []
    for tool in tools:
        python = pythons.get(tool, sys.executable)
        server = Server(scoreboard.OFFLINE, python=python)
        ran = {each.name for each in found if each.tool == PLAIN and each.verdict != "broken"}
        asked = [(title, case) for title, case in cases if PLAIN not in tools or tool == PLAIN or case.name in ran]
        try:
            for outcome in scoreboard.judge(Asker(scripts, server, limit, python, beside), tool, asked):
                found.append(outcome)
                said = ", ".join(outcome.found) or outcome.why or "nothing found"
                verdict: str = outcome.verdict
                if tool == PLAIN:
                    verdict, said = ("fails", said) if verdict == "broken" else ("runs", f"{outcome.seconds} s")
                click.echo(f"{tool}: {verdict}: {outcome.name}: {shortened(said, 200)}", err=True)
        finally:
            server.close()
    return found


@click.command()
@click.argument("name", required=False)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--from", "source", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER", help="A copy.")
@click.option("--tool", "tools", multiple=True, type=click.Choice(TOOLS), help="Ask this one. [default: all]")
@click.option(
    "--rivals",
    "environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where other tools are installed, each in an environment of its own. [default: a temporary folder]",
)
@click.option("--work", type=click.Path(path_type=Path, file_okay=False), help="Where programs are laid out.")
@click.option("--record", is_flag=True, help="Keep what was found in baselines/others, and write docs/benchmarks.md.")
@json_option("Also write each outcome to this file.")
@click.option("--no-plain", "runs_are_known", is_flag=True, help="Do not run each program by itself first.")
@click.option(
    "--scripts",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the folders are that the commands of a manifest.json run in. [default: FOLDER]",
)
@click.option("--limit", type=click.IntRange(min=1), default=120, show_default=True, metavar="SECONDS")
def main(
    name: str | None,
    ids: tuple[str, ...],
    source: Path | None,
    tools: tuple[str, ...],
    environments: Path | None,
    work: Path | None,
    record: bool,
    json_file: Path | None,
    runs_are_known: bool,
    scripts: Path | None,
    limit: int,
) -> None:
    """Count what tools find in a set of training programs: one that is known by NAME, or a FOLDER."""
    if name is None:
        echo(known_sets())
        return
    try:
        if json_file is not None:
            check_file(json_file)
        with tempfile.TemporaryDirectory(prefix="others-") as scratch:
            place = work or Path(scratch)
            if name in sets.SETS:
                folder = sets.laid_out(name, source or sets.bring(name, place), place)
            elif Path(name).is_dir():
                # In a place of its own: a tool may take what lies in a folder called tests for tests, and say less.
                folder = place / Path(name).resolve().name
                shutil.copytree(name, folder, dirs_exist_ok=True)
            else:
                raise CannotTry(f"{name} is neither a folder nor a known set; known are {', '.join(sets.SETS)}")
            cases, beside = cases_of(folder, scripts or folder, ids), beside_of(folder)
            wanted = tools or TOOLS
            pythons = {
                tool: rivals.environment(tool, environments or Path(scratch, "rivals"))
                for tool in wanted
                if tool != HARNESS
            }
            first = () if runs_are_known else (PLAIN,)
            outcomes = outcomes_of(cases, scripts or folder, beside, (*first, *wanted), pythons, limit)
    except CannotTry as error:
        raise CannotBeTried(str(error)) from error
    result = {
        "schema": 1,
        "name": name if name in sets.SETS else folder.resolve().name,
        "measured": f"{datetime.now(tz=UTC):%Y-%m-%d}",
        "versions": {HARNESS: __version__, **{tool: rivals.release(tool) for tool in pythons}},
        "outcomes": [asdict(each) for each in outcomes],
    }
    echo(page.terminal_lines(outcomes))
    if json_file is not None:
        write_atomically(json_file, page.record_text(result))
    if record:
        RECORDS.mkdir(exist_ok=True)
        write_atomically(RECORDS / f"{result['name']}.json", page.record_text(result))
        page.write()


if __name__ == "__main__":
    main()
