"""``harness resume --every-event --repro DIR``: what a maintainer needs to see one loss, without this harness."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.errors import CannotTry
from harness.files import check_size
from harness.findings import Finding
from harness.fingerprint import library_versions
from harness.resume.plan import KillReport
from harness.starts.isolated import folders_of
from harness.starts.mirror import NOT_DATA, Mirror
from harness.starts.moments import Moment, Store, build
from harness.starts.workdir import Command

PROGRAM = Path(__file__).parent / "assets" / "repro.py"

LARGEST = 2**30
"""Bytes of a working directory that is written down."""

LIBRARIES = ("torch", "transformers", "accelerate", "safetensors", "lightning")
"""Libraries whose versions are told, where they are installed."""


def check(folder: Path, command: Command, *, every_event: bool) -> None:
    """Whether a folder can be made.

    Raises:
        CannotTry: it is there already; the script is not killed at every event, does not lie below the working
            directory, which is too large, or is started in several processes.
    """
    if not every_event:
        raise CannotTry("--repro goes with --every-event: another kill is not built, and cannot be written down")
    if folder.exists():
        raise CannotTry(f"--repro {folder}: it is there already; remove it, or name another folder")
    folders = folders_of(command.script, module=command.module)
    if len(folders) > 1 or command.processes > 1:
        raise CannotTry("--repro is for a script below the working directory that is started in one process")
    check_size(Path(folders[0]), LARGEST)


def write(
    folder: Path,
    command: Command,
    resume_arguments: Sequence[str],
    store: Store,
    kill: KillReport,
    moment: Moment,
    finding: Finding,
) -> None:
    """Write the folder, which was checked: the script with what lies beside it, the same as the kill left it, and what
    to run."""
    (own,) = folders_of(command.script, module=command.module)
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    with TemporaryDirectory(prefix="harness-repro-") as scratch:
        for name in ("begins", "killed"):
            mirror = Mirror(Path(scratch, name))
            mirror.add(own)
            if name == "killed":
                build(moment, store, mirror)
            shutil.copytree(mirror.of(own), beside / name, ignore=shutil.ignore_patterns(*NOT_DATA, "__pycache__"))
    started = ["-m", command.script] if command.module else [command.script]
    about = {"command": [*started, *command.arguments], "resume_arguments": list(resume_arguments)}
    (beside / "repro.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(PROGRAM, beside / "repro.py")
    (beside / "ISSUE.md").write_text(_issue(command, kill, finding), encoding="utf-8")
    os.rename(beside, folder)


def _issue(command: Command, kill: KillReport, finding: Finding) -> str:
    versions = [f"{name} {version}" for name, version in library_versions().items() if version and name in LIBRARIES]
    words = " ".join(["python", *(["-m"] * command.module), command.script, *command.arguments])
    return f"""# {finding.message.rstrip(".")}

`{words}` was killed (SIGKILL) after update {kill.at}, {kill.event}, and started again.

- expected: {finding.expected}
- observed: {finding.observed}
- the line: `{kill.where or finding.where}`

To see it:

    python repro.py

It runs the script to its end in a copy of `begins/`, and again in a copy of `killed/`, which is the same folder as the
kill left it; then it says in what the two differ. The kill itself need not be timed.

{", ".join(versions)}; Python {sys.version.split()[0]}; {sys.platform}
"""
