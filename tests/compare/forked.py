"""The corpus of ``harness compare``, each start a fork of a process that has imported the libraries.

    python -m tests.compare.forked [NAMES]

A line of JSON for each entry that a name is part of says what the script and the edited one differ in. Tests ask
:class:`tests.server.Server` for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from harness.compare.run import compare_scripts
from harness.errors import CannotTry
from harness.starts.orders import Orders
from harness.starts.workdir import Command, Start, Workdir
from scripts.expectations import Program
from tests import forks
from tests.checks.corpus import edited
from tests.programs import SET, programs_of
from tests.resume import forked

CORPUS = SET / "compare"

FIRST_SIDES = "TESTS_OF_COMPARE_FIRST_SIDES"
"""Names a folder that keeps what the starts of the scripts as they are came to: many are compared with each of them."""


def entries() -> dict[str, Program]:
    """By name; of those that are the same nothing is wrong."""
    return {each.id: each for each in programs_of("compare")}


def result_of(program: Program) -> dict[str, Any]:
    """What ``harness compare`` says of a script and the edited one, as JSON."""
    script, edits = CORPUS / program.files[0], [each.model_dump() for each in program.edit]
    folder = Path(tempfile.mkdtemp(prefix="compare-corpus-"))
    (folder / "a.py").write_text(edited(script), encoding="utf-8")
    (folder / "b.py").write_text(edited(script, edits), encoding="utf-8")
    os.chdir(folder)
    try:
        return {"name": program.id, **compare_scripts(Command("a.py"), Command("b.py")).as_dict()}
    except CannotTry as error:
        return {"name": program.id, "error": str(error), "differences": []}
    finally:
        os.chdir(CORPUS)
        shutil.rmtree(folder, ignore_errors=True)


def keep_first_sides(folder: Path) -> None:
    """From now on a start of a script as it is, for the same update, is what an earlier one was."""
    original = Workdir.start

    def start(workdir: Workdir, orders: Orders, timeout: float | None = None) -> Start:
        keep = orders.keep
        if workdir.command.script != "a.py" or keep is None:
            return original(workdir, orders, timeout)
        asked = (workdir.folder / "a.py").read_text(), keep.update, orders.most_updates
        kept = folder / hashlib.sha256(repr(asked).encode()).hexdigest()
        if not kept.with_suffix(".pickle").exists():
            started = original(workdir, orders, timeout)
            if Path(keep.file).exists():
                shutil.copy(keep.file, kept.with_suffix(".pt"))
            kept.with_suffix(".pickle").write_bytes(pickle.dumps(started))
        elif kept.with_suffix(".pt").exists():
            shutil.copy(kept.with_suffix(".pt"), keep.file)
        found: Start = pickle.loads(kept.with_suffix(".pickle").read_bytes())
        return found

    Workdir.start = start  # type: ignore[method-assign, assignment]


def main(arguments: Sequence[str], prog_name: str = "") -> None:
    torch.set_num_threads(1)  # what is compared is computed here, and threads of their own would not be in the forks
    forked.install()
    if FIRST_SIDES in os.environ:
        keep_first_sides(Path(os.environ[FIRST_SIDES]))
    for name, program in entries().items():
        if any(each in name for each in arguments or [""]):
            print(json.dumps(result_of(program)), flush=True)


if __name__ == "__main__":
    forks.warm()
    main(sys.argv[1:])
