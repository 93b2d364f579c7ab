"""The mutants that need several processes and their twins, in one start: a program of :class:`tests.server.Server`."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

from harness.launch import is_main_process, process_group
from tests.mutants.test_mutants import in_each_rank

PATIENCE = 60.0
"""Seconds after which a rank that waits for another gives up."""


def main(arguments: Sequence[str], prog_name: str) -> None:
    """Read the recipe from the first file, and write to the second what the checks say in the first rank."""
    given, file = map(Path, arguments)
    with process_group(PATIENCE):
        found = in_each_rank(pickle.loads(given.read_bytes()))
    if is_main_process():
        file.write_bytes(pickle.dumps(found))
