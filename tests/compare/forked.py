"""The corpus of ``harness compare``, each start a fork of a process that has imported the libraries.

    python -m tests.compare.forked [--plain] [NAMES]

A line of JSON for each entry that a name is part of says what the script and the edited one differ in.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import torch

from harness.compare.run import compare_scripts
from harness.errors import CannotTry
from harness.resume.starts import Command
from tests.checks.corpus import edited
from tests.resume import forked

CORPUS = Path(__file__).parent / "corpus"


def entries() -> dict[str, dict[str, Any]]:
    """By name; those that are the same have no cause."""
    tables = tomllib.loads((CORPUS / "differences.toml").read_text(encoding="utf-8"))
    return {entry["name"]: entry for kind in ("difference", "same") for entry in tables[kind]}


def result_of(entry: dict[str, Any]) -> dict[str, Any]:
    """What ``harness compare`` says of a script and the edited one, as JSON."""
    script = CORPUS / entry["script"]
    folder = Path(tempfile.mkdtemp(prefix="compare-corpus-"))
    (folder / "a.py").write_text(edited(script), encoding="utf-8")
    (folder / "b.py").write_text(edited(script, entry["edit"]), encoding="utf-8")
    os.chdir(folder)
    try:
        return {"name": entry["name"], **compare_scripts(Command("a.py"), Command("b.py")).as_dict()}
    except CannotTry as error:
        return {"name": entry["name"], "error": str(error), "differences": []}
    finally:
        os.chdir(CORPUS)
        shutil.rmtree(folder, ignore_errors=True)


def main(names: list[str]) -> None:
    forked.preload(plain="--plain" in names)
    torch.set_num_threads(1)  # what is compared is computed here, and threads of their own would not be in the forks
    forked.install()
    names = [each for each in names if each != "--plain"]
    for name, entry in entries().items():
        if any(each in name for each in names or [""]):
            print(json.dumps(result_of(entry)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
