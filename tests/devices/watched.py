"""What ``harness check`` finds in a script on the second device, and where its parameters lay."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.checks.corpus import Case
from tests.devices import COMPILER
from tests.devices.moved import DATA, MODEL, Moved, asking, moved
from tests.server import CHECKPOINT, Server, Verdict

How = Literal["asked", "batches", "data", "default"]
"""The script asks for CUDA and gets the device; it moves its models and batches, or all its data, too
(tests.devices.moved); or all that is made lies there (``torch.set_default_device``)."""
WAYS: tuple[How, ...] = ("batches", "data", "default")
"""For scripts that name no device."""
LIMIT = 40
"""Seconds after which a script that waits for another device than it has is ended."""
CHANGED: Mapping[How, Callable[[str], Moved]] = {
    "asked": asking,
    "batches": partial(moved, made=MODEL),
    "data": partial(moved, made=DATA),
    "default": Moved,
}

_SERVER = pytest.StashKey[Server]()


def device_server(config: pytest.Config) -> Server:
    """The server whose forks have the second device: torch cannot take one back, so no other server gets it.

    A test that asks is skipped where there is no compiler, and fails so in CI.
    """
    if shutil.which(COMPILER) is None:
        without = pytest.fail if os.environ.get("CI") else pytest.skip
        without(f"the second device needs a C++ compiler: {COMPILER} is not there, and CXX names no other")
    if _SERVER not in config.stash:
        config.stash[_SERVER] = Server(imports=["tests.devices.second"])
        config.add_cleanup(config.stash[_SERVER].close)
    return config.stash[_SERVER]


@dataclass(frozen=True)
class OnDevice:
    verdict: Verdict
    places: list[str]
    """Where the parameters lay that optimizers stepped on."""
    numbers_read: int
    copies_to_host: int


def watch(server: Server, case: Case, how: How, *options: str) -> OnDevice:
    """``harness check`` of a case's script on the device. Its findings name the lines of the script as it was."""
    changed = CHANGED[how](case.text)
    with tempfile.TemporaryDirectory(dir=server.folder) as name:
        folder = Path(name)
        (folder / case.script).write_text(changed.text, encoding="utf-8")
        checkpoint = CHECKPOINT if case.pretrained else server.checkpoint
        words = ("device.json", how, "check", *options, "--json", "found.json", case.script, str(server.data))
        done = server.run(
            folder,
            *words,
            str(checkpoint),
            program="tests.devices.run",
            limit=LIMIT,
            processes=case.processes,
            environment=case.environment,
        )
        file = folder / "device.json"
        said: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"places": [], "waits": (0, 0)}
        verdict = Verdict.of(folder / "found.json", done)
    findings = [each | {"where": _before(each["where"], case.script, changed)} for each in verdict.findings]
    return OnDevice(replace(verdict, findings=findings), said["places"], *said["waits"])


def _before(where: Any, script: str, changed: Moved) -> Any:
    file, _, line = str(where).rpartition(":")
    return f"{file}:{changed.line_before(int(line))}" if file == script and line.isdigit() else where
