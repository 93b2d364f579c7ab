"""``harness doctor``"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from harness.cli.options import CANNOT_TRY, examples
from harness.cli.output import echo, say
from harness.errors import CannotTry
from harness.findings import count


@click.command(
    short_help="Show how scripts are isolated here, and what a killed command left.",
    epilog=examples("harness doctor", "harness doctor --put-back"),
)
@click.option(
    "--put-back", is_flag=True, help="Restore the files that a killed command left changed, after asking you."
)
@click.option("--yes", is_flag=True, help="With --put-back, do not ask.")
def doctor(put_back: bool, yes: bool) -> None:
    """Show which interpreter and libraries are used, how scripts are isolated here, and what a killed command left.

    Exit status: 0 nothing is left, 2 a killed command left files changed.
    """
    from harness.put_back import left_behind, logs_folder, put_back_all

    echo(_about())
    left = list(left_behind(logs_folder()))
    if put_back and left:
        echo(_left(left))
        if not yes and not click.confirm("Restore these? Changes you have made since are lost.", err=True):
            sys.exit(CANNOT_TRY)
    if put_back:
        failed = [each for log in reversed(left) for each in put_back_all(log)]
        if failed:
            raise CannotTry(
                f"{', '.join(failed)} could not be restored; their contents are kept in {logs_folder()}, in the "
                "order of changes.jsonl"
            )
        say(f"put back      what {count(len(left), 'killed command')} had changed" if left else "put back      nothing")
        return
    echo(_left(left))
    if left:
        say("              harness doctor --put-back restores them")
        sys.exit(CANNOT_TRY)


def _left(logs: Iterable[Path]) -> Iterator[str]:
    """What killed commands have left changed, a line each."""
    from harness.put_back import changes_in

    for log in logs:
        changes = [change for folder in (log, *log.glob("**/")) for change in changes_in(folder)]
        paths = dict.fromkeys(change["path"] for change in changes if change["kind"] == "file")
        made = sum(change["kind"] == "made" for change in changes)
        what = ", ".join([*paths, *[count(made, "new path")] * bool(made)])
        yield f"left changed  {what or 'names or times'}, by a killed command ({log.name})"


def _about() -> Iterator[str]:
    from harness import __version__
    from harness.fingerprint import library_versions
    from harness.put_back import logs_folder
    from harness.starts.levels import MEANS, better, chosen, why_not
    from harness.starts.overlay import kept_in

    yield f"harness       {__version__}, {Path(__file__).parents[1]}"
    yield f"Python        {sys.version.split()[0]}, {sys.executable}"
    versions = {name: version for name, version in library_versions().items() if version}
    yield f"libraries     {', '.join(f'{name} {version}' for name, version in versions.items())}"
    level = chosen()
    yield f"isolation     {level}: {MEANS[level]}"
    if level == "overlay":
        for place in kept_in():
            yield f"              what scripts write is kept in {place} ({_free(place)} free)"
        return
    temporary = tempfile.gettempdir()
    if (why := why_not("overlay")) is not None:
        yield f"              no private view of the file system: {why}"
        yield f"              to get one: {better()}"
    if level == "guard" and (why := why_not("mirror")) is not None:
        yield f"              programs are not restricted: {why}"
    yield f"              scripts run in their own directory below {temporary} ({_free(temporary)} free; TMPDIR)"
    yield f"              {'block sharing copies' if _shares_blocks(temporary) else 'whole copies'} of small files"
    yield f"              what they change elsewhere is kept in {logs_folder()} until it is restored"


def _free(folder: str) -> str:
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return f"{shutil.disk_usage(folder).free / 1e9:.1f} GB"


def _shares_blocks(temporary: str) -> bool:
    """Whether a file of the working directory can be copied there without copying its blocks."""
    from harness.put_back import cloned

    there = os.path.join(temporary, f"harness-doctor-{os.getpid()}")
    try:
        return cloned(__file__, there)
    finally:
        Path(there).unlink(missing_ok=True)
