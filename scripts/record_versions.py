"""Leave the records of this environment for ``harness matrix``: python scripts/record_versions.py FOLDER.

The three loops, and the documents' code where HARNESS_DOCUMENTS names their folder. What they find is for the matrix;
only what could not run fails.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from harness.documented_run.recipe import LOOPS

FOUND = 1


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    options = shlex.split(os.environ.get("HARNESS_RUN_OPTIONS", ""))
    # Once for each set of versions: it says nothing of a single run.
    more = {"accelerate": ["--installation"]}
    commands = [
        ["run", *options, "--loop", loop, *more.get(loop, []), "--output", str(folder / loop)] for loop in LOOPS
    ]
    if documents := os.environ.get("HARNESS_DOCUMENTS"):
        real = ["--recipe", "bert-base"] if "HARNESS_DATA" in os.environ and "HARNESS_CHECKPOINT" in os.environ else []
        real += ["--checkpoint", os.environ["HARNESS_CHECKPOINT"]] if real else []
        commands.append(["documents", documents, *real, "--output", str(folder)])
    for command in commands:
        print("+ harness", shlex.join(command), flush=True)
        status = subprocess.run([sys.executable, "-m", "harness", *command]).returncode  # noqa: S603
        left = Path(command[-1], "documents.json" if command[0] == "documents" else "run.json")
        if status not in (0, FOUND) or not left.exists():
            sys.exit(
                f"harness {command[0]} ended with status {status} and left {'a' if left.exists() else 'no'} record"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
