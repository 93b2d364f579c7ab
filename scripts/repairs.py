"""Repair the whole corpus of ``harness check`` with ``--fix``, and write down what became of it.

    python -m scripts.repairs [--anew] [NAME]...

writes ``scripts/records/repairs.json`` after each script. Scripts that are recorded
are left out, unless they are named, or all are to be repaired ``--anew``; so it goes on where it was interrupted.
"""

from __future__ import annotations

import ast
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.compat import no_progress_bars
from harness.files import write_atomically
from scripts.record_pages import REPAIRS, is_repaired, is_worse, why_not
from tests.checks.corpus import SCRIPTS, Case, all_cases, edited
from tests.repairs.forked import RESULT
from tests.server import CHECKPOINT, Server, make_data

ROOT = Path(__file__).parents[1]
LIMIT = 900
"""Seconds for a script, with all its runs."""

_outcomes: dict[str, dict[str, Any]] = {}
"""What is found in right scripts, by their text."""


def cases() -> list[Case]:
    """Every mutant, every bad example and every right script that runs in one process."""
    kinds = ("bad", "bug", "good", "as it is", "right")
    found = [each for each in all_cases() if each.kind in kinds and each.processes == 1 and not each.environment]
    return sorted(found, key=lambda each: kinds.index(each.kind))


def key(case: Case) -> str:
    return f"{case.check}/{case.name}" if case.kind in ("bad", "good") else case.name


def repaired(server: Server, case: Case) -> dict[str, Any]:
    """One entry of ``repairs.json``."""
    entry: dict[str, Any] = {"name": key(case), "kind": case.kind, "check": case.check}
    result, text = _fixed(server, case.script, case.text)
    if isinstance(result, str):
        return entry | {"failed": result}
    entry |= {"runs": result["runs"], "found": _checks(result["before"]), "left": _checks(result["after"])}
    entry["patches"] = [
        {"check": each["check"], "changes": _changes(each["diff"]), "why": each["why"]} for each in result["patches"]
    ]
    if text != case.text and (right := right_text(case)) is not None:
        entry["like"] = _likeness(server, case, text, right, result["after"])
    return entry


def _changes(diff: str | None) -> list[str] | None:
    """The lines that a patch takes away and puts there."""
    return None if diff is None else [line for line in diff.splitlines()[2:] if line.startswith(("+", "-"))]


def _fixed(server: Server, script: str, text: str) -> tuple[dict[str, Any] | str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / script).write_text(text, encoding="utf-8")
        if _reads_data(text):
            # In the working directory, so that each run finds it as it was: without another's tokenized rows.
            make_data(folder / "data")
        done = server.run(folder, script, "data", str(CHECKPOINT), program="tests.repairs.forked", limit=LIMIT)
        file = folder / RESULT
        if not file.exists():
            return (done.stderr.strip().splitlines() or ["it ended without a message"])[-1], text
        return json.loads(file.read_text(encoding="utf-8")), (folder / script).read_text(encoding="utf-8")


def _reads_data(text: str) -> bool:
    return "sys.argv" in text or "parse_args" in text


def right_text(case: Case) -> str | None:
    """The script without its bug."""
    if case.kind == "bug":
        return edited(SCRIPTS / case.script)
    return next((each.text for each in all_cases() if each.check == case.check and each.name == "good.py"), None)


def _likeness(server: Server, case: Case, text: str, right: str, after: dict[str, Any]) -> str:
    """How near a repaired script is to the right one: the same code, the same outcome of all checks, or another."""
    if ast.dump(ast.parse(text)) == ast.dump(ast.parse(right)):
        return "code"
    if right not in _outcomes:
        of_right, _ = _fixed(server, case.script, right)
        if isinstance(of_right, str):
            return "not compared"
        _outcomes[right] = of_right["before"]
    same = all(_outcomes[right][name] == after[name] for name in ("findings", "held", "updates"))
    return "outcome" if same else "other"


def _checks(report: dict[str, Any]) -> list[str]:
    return [each["check"] for each in report["findings"]]


def main(arguments: Sequence[str]) -> None:
    known = [] if "--anew" in arguments or not REPAIRS.exists() else json.loads(REPAIRS.read_text())["scripts"]
    names = {each for each in arguments if not each.startswith("--")}
    kept = {each["name"]: each for each in known if each["name"] not in names}
    no_progress_bars()
    server = Server()
    try:
        for case in cases():
            if key(case) in kept or (names and key(case) not in names):
                continue
            kept[key(case)] = entry = repaired(server, case)
            says = entry.get("failed") or ("repaired" if is_repaired(entry) else why_not(entry) or "nothing found")
            print(f"{key(case)}: {says} {entry.get('like', '')}{' WORSE' * is_worse(entry)}", file=sys.stderr)
            _write(kept)
    finally:
        server.close()
    _write(kept)


def _write(kept: dict[str, dict[str, Any]]) -> None:
    entries = [kept[key(case)] for case in cases() if key(case) in kept]
    write_atomically(REPAIRS, json.dumps({"schema": 1, "scripts": entries}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
