"""Watch the whole corpus of ``harness check``, and write down what was found.

    python -m scripts.detection [NAME]...

writes ``baselines/detection.json`` and ``docs/detection.md``. It takes a few minutes on two cores; with names only
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
from tests.checks.corpus import Case, all_cases
from tests.server import Server, Verdict

Given = TypeVar("Given")
Result = TypeVar("Result")

ROOT = Path(__file__).parents[1]
DETECTION = ROOT / "baselines" / "detection.json"
TABLE = ROOT / "docs" / "detection.md"
MARGINS = ROOT / "scripts" / "records" / "margins.json"
"""What scripts.margins writes."""

BROKEN = ROOT / "scripts" / "records" / "broken-checks.json"
"""What scripts.broken_checks writes."""

SHOWN = 2
"""Scripts that are named where a constant changes the verdict on more."""

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


def page(detection: dict[str, Any], margins: dict[str, Any], broken: dict[str, Any]) -> str:
    """docs/detection.md."""
    return "\n".join([*table_lines(detection), "", *margin_lines(margins), "", *broken_lines(broken)]) + "\n"


def table_lines(detection: dict[str, Any]) -> Iterator[str]:
    """By check, which mutants are caught, and at which update."""
    mutants, variants = detection["mutants"], detection["variants"]
    caught = [each for each in mutants if _causes(each) == {each["check"]}]
    flagged = [each for each in variants if _causes(each) != {*each["warns"]}]
    more = sum(len(_causes(each)) < len(each["found"]) for each in mutants)
    warned = sum(bool(each["warns"]) for each in variants)
    yield "# What `harness check` finds in its own corpus"
    yield ""
    yield "Written by `python -m scripts.detection`. The corpus was written together with the checks, so these figures"
    yield "say that nothing got lost, not how well other people's scripts are judged."
    yield ""
    yield (
        f"{len(caught)} of {len(mutants)} mutants are caught by the check that they are meant for and by no other, but "
        f"for findings that it explains ({more} have some); "
        f"{len(flagged)} of {len(variants)} right scripts are flagged ({warned} with a warning that explains when the "
        f"code is intended); {len(detection['unseen'])} more bugs are known that no check sees."
    )
    yield ""
    yield "| check | mutants: caught at update |"
    yield "| --- | --- |"
    for check in sorted({each["check"] for each in mutants}):
        mine = [each for each in mutants if each["check"] == check]
        cells = [f"{each['name']}: {_when(each)}" + (f" ({each['case']})" if each["case"] else "") for each in mine]
        yield f"| `{check}` | {', '.join(cells)} |"
    yield ""
    yield "Not seen: " + "; ".join(f"{each['name']} ({each['why']})" for each in detection["unseen"]) + "."


def _causes(entry: dict[str, Any]) -> set[str]:
    """The checks whose findings no other one explains."""
    return {found["check"] for found in entry["found"] if "explained_by" not in found}


def margin_lines(margins: dict[str, Any]) -> Iterator[str]:
    """Which constants of the watch decide: those of which half or double changes a verdict."""
    constants = margins["constants"]
    sharp = {name: each for name, each in constants.items() if each["halved"] or each["doubled"]}
    yield "## Constants that decide"
    yield ""
    yield "Written by `python -m scripts.margins`. Each numeric constant of `harness/watch` was halved and doubled, and"
    yield f"{margins['scripts']} scripts were watched again, the checks' examples included. {len(sharp)} of"
    yield f"{len(constants)} constants change a verdict; neither half nor double of the others does. Several were"
    yield "turned at once, and parted where a verdict changed, so two that undo each other would not show. Of a number"
    yield "from 0.5 to 1, it is the distance from 1 that is halved or doubled."
    yield ""
    yield "| constant | value | halved | doubled |"
    yield "| --- | --- | --- | --- |"
    for name, each in sorted(sharp.items()):
        yield f"| `{name}` | {each['value']:g} | {_scripts(each['halved'])} | {_scripts(each['doubled'])} |"


def broken_lines(broken: dict[str, Any]) -> Iterator[str]:
    """What of a broken check nothing notices."""
    changes = broken["broken"]
    left = [each for each in changes if each["survives"]]
    yield "## Checks that were broken"
    yield ""
    yield "Written by `python -m scripts.broken_checks`. Wherever a check reports, the report was removed,"
    yield "and the condition that it depends on inverted. Then it judged its facts that are made by hand,"
    yield "and its scripts of the first ring were watched."
    yield f"Of {len(changes)} changes in {len({each['check'] for each in changes})} checks, {len(left)} survive."
    if left:
        yield ""
        yield "| check | line | what was changed |"
        yield "| --- | --- | --- |"
        yield from (f"| `{each['check']}` | {each['line']} | {each['how']} |" for each in left)


def _scripts(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _when(mutant: dict[str, Any]) -> str:
    updates = [found["update"] for found in mutant["found"] if found["check"] == mutant["check"]]
    if not updates:
        return "missed"
    return "evaluation" if updates[0] is None else str(updates[0])


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
    others = (json.loads(file.read_text(encoding="utf-8")) for file in (MARGINS, BROKEN))
    write_atomically(TABLE, page(detection, *others))


if __name__ == "__main__":
    main(sys.argv[1:])
