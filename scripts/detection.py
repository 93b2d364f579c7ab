"""Watch the whole corpus of ``harness check``, and write down what was found.

    python -m scripts.detection [NAME]...

writes ``baselines/detection.json``. It takes a few minutes on two cores; with names only
those scripts are watched, and what is written of the others stays.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from harness.files import write_atomically
from scripts.record_pages import DETECTION
from tests.checks.corpus import Case, all_cases
from tests.server import Server, Verdict

Given = TypeVar("Given")
Result = TypeVar("Result")

ROOT = Path(__file__).parents[1]
KINDS = {"bug": "mutants", "right": "variants", "as it is": "variants", "unseen": "unseen"}
"""The list of ``detection.json`` that a case is in, by its kind; the pages' examples are in none."""


def watch_all(cases: Sequence[Case], *, at_once: int | None = None) -> Iterator[tuple[Case, Verdict]]:
    """Watch the scripts, as many at once as there are cores, in the order of ``cases``."""
    return on_servers(Server.watch, cases, at_once=at_once)


def on_servers(
    work: Callable[[Server, Given], Result], cases: Sequence[Given], *, at_once: int | None = None
) -> Iterator[tuple[Given, Result]]:
    """Do the work for each case, as many at once as there are cores, in the order of ``cases``."""
    count = at_once or len(os.sched_getaffinity(0))
    servers: SimpleQueue[Server] = SimpleQueue()
    started = [Server() for _ in range(count)]
    for server in started:
        servers.put(server)

    def one(case: Given) -> Result:
        server = servers.get()
        try:
            return work(server, case)
        finally:
            servers.put(server)

    try:
        with ThreadPoolExecutor(count) as pool:
            yield from zip(cases, pool.map(one, cases), strict=True)
    finally:
        for server in started:
            server.close()


def recorded(case: Case, verdict: Verdict) -> dict[str, Any]:
    """One entry of ``detection.json``."""
    about: dict[str, Any] = {"name": case.name, "script": case.script}
    if case.kind == "bug":
        about |= {"check": case.check, "case": case.case}
    elif case.kind == "unseen":
        about |= {"why": case.why}
    else:
        about |= {"warns": list(case.warns)}
    return {**about, "found": found_in(verdict), "updates": verdict.updates, "seconds": round(verdict.seconds, 1)}


def found_in(verdict: Verdict) -> list[dict[str, Any]]:
    """What was found, where: a line's number in the edited script, 1 where none is at fault; and what explains it."""
    return [
        {"check": each["check"], "line": line_of(each["where"]), "update": each["update"]}
        | ({"explained_by": each["explained_by"]} if each["explained_by"] else {})
        for each in verdict.findings
    ]


def line_of(where: str) -> int:
    """The line of a finding's place."""
    return int(where.rpartition(":")[2])


def main(names: Sequence[str]) -> None:
    cases = {case.name: case for case in all_cases() if case.kind in KINDS}
    if unknown := set(names) - cases.keys():
        sys.exit(f"no such script: {', '.join(sorted(unknown))}")
    detection: dict[str, Any] = {"schema": 1, "mutants": [], "variants": [], "unseen": []}
    written = json.loads(DETECTION.read_text()) if names else {}
    entries = {each["name"]: each for kind in set(KINDS.values()) for each in written.get(kind, [])}
    for case, verdict in watch_all([cases[name] for name in names or cases]):
        entries[case.name] = recorded(case, verdict)
        print(f"{case.name}: {', '.join(verdict.checks) or '-'} {verdict.crashed or ''}", file=sys.stderr)
    for name, case in cases.items():
        if name in entries:
            detection[KINDS[case.kind]].append(entries[name])
    write_atomically(DETECTION, json.dumps(detection, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
