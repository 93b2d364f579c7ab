"""``harness doctor``"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from harness.cli.options import CANNOT_TRY, examples
from harness.cli.output import echo, say
from harness.errors import CannotTry
from harness.findings import count


@click.command(
    short_help="Say how scripts are isolated here, and what is left.",
    epilog=examples("harness doctor", "harness doctor --put-back"),
)
@click.option("--put-back", is_flag=True, help="Put back the files that a killed command left changed.")
def doctor(put_back: bool) -> None:
    """Say which interpreter and libraries are used, how scripts are isolated here, and what a killed command left.

    Exit status: 0 nothing is left, 2 a killed command left files changed.
    """
    from harness.put_back import changes_in, left_behind, logs_folder, put_back_all

    echo(_about())
    left = list(left_behind(logs_folder()))
    if put_back:
        failed = [each for log in reversed(left) for each in put_back_all(log)]
        if failed:
            raise CannotTry(
                f"{', '.join(failed)} could not be put back; what they held is kept in {logs_folder()}, in the order "
                "of changes.jsonl"
            )
        say(f"put back      what {count(len(left), 'killed command')} had changed" if left else "put back      nothing")
        return
    for log in left:
        paths = [
            each["path"] for folder in (log, *log.glob("**/")) for each in changes_in(folder) if each["kind"] == "file"
        ]
        say(f"left changed  {', '.join(paths) or 'new files'}, by a command that was killed ({log.name})")
    if left:
        say("              harness doctor --put-back restores them")
        sys.exit(CANNOT_TRY)


def _about() -> Iterator[str]:
    from harness import __version__
    from harness.fingerprint import library_versions
    from harness.put_back import logs_folder

    yield f"harness       {__version__}, {Path(__file__).parents[1]}"
    yield f"Python        {sys.version.split()[0]}, {sys.executable}"
    versions = {name: version for name, version in library_versions().items() if version}
    yield f"libraries     {', '.join(f'{name} {version}' for name, version in versions.items())}"
    temporary = tempfile.gettempdir()
    free = shutil.disk_usage(temporary).free
    yield f"isolation     scripts run in a directory of their own below {temporary} ({free / 1e9:.1f} GB free; TMPDIR)"
    yield f"              {'block sharing copies' if _shares_blocks(temporary) else 'whole copies'} of what is small"
    yield f"              what they change elsewhere is kept in {logs_folder()} until it is put back"


def _shares_blocks(temporary: str) -> bool:
    """Whether a file of the working directory can be copied there without copying its blocks."""
    from harness.put_back import cloned

    there = os.path.join(temporary, f"harness-doctor-{os.getpid()}")
    try:
        return cloned(__file__, there)
    finally:
        Path(there).unlink(missing_ok=True)
