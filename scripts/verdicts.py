"""Which checks found something, passed and did not apply in programs that are recorded elsewhere by what was found.

    python -m scripts.verdicts [NAME]...

writes ``tests/verdicts.json``: for each program of SilentTrain, and for each probe of a folder of other people's
code (``HARNESS_CORPORA``), by a digest of its text, a letter for each check. A check that no longer looks is seen here,
and nowhere else where its fault is rare. With names only those programs are watched, ``probes`` being all
probes; of all it takes half an hour on two cores.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from harness import catalogue
from harness.files import write_atomically
from scripts.detection import on_servers
from tests.programs import PARTS, Version, found_in, versions_of
from tests.server import Server, Verdict

RECORD = Path(__file__).parents[1] / "tests" / "verdicts.json"
CORPORA = Path(os.environ.get("HARNESS_CORPORA") or "absent")
LIMIT = 240
"""Seconds after which a probe is ended."""

LETTERS = {"f": "found", "h": "passed", "-": "did not apply"}
PROBES = "probes"


def name_of(version: Version) -> str:
    return f"{version.part}/{version.name}"


def probes() -> list[Path]:
    """Probes of what was once judged wrongly, in folders by date."""
    return sorted(CORPORA.glob("probes/*/false/*.py"))


def digest_of(probe: Path) -> str:
    return f"{PROBES}/{hashlib.sha256(probe.read_bytes()).hexdigest()[:12]}"


def watched(server: Server, script: Path, folder: Path) -> Verdict:
    """What is found in a probe that is copied to a folder."""
    shutil.copy(script, folder)
    done = server.run(folder, "check", "--json", "found.json", script.name, limit=LIMIT)
    return Verdict.of(folder / "found.json", done)


def letters(verdict: Verdict, checks: list[str]) -> str:
    """A letter for each of these checks."""
    return "".join("f" if each in verdict.checks else "h" if each in verdict.held else "-" for each in checks)


@cache
def recorded() -> tuple[list[str], dict[str, str]]:
    """The checks, and by program a letter for each of them."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    return record["checks"], record["verdicts"]


def differences(name: str, verdict: Verdict) -> dict[str, str]:
    """Check to what is recorded and what is so now, where that is another; of a program that is recorded."""
    checks, verdicts = recorded()
    now = letters(verdict, checks)
    pairs = zip(checks, verdicts.get(name, now), now, strict=True)
    there = catalogue.checks()
    return {
        check: f"{LETTERS[before]}, now {LETTERS[after]}"
        for check, before, after in pairs
        if before != after and check in there
    }


def all_watched(wanted: set[str]) -> Iterator[tuple[str, Verdict]]:
    """The programs of these names, or all, with what came of them."""
    versions = [each for part in PARTS for each in versions_of(part) if not wanted or name_of(each) in wanted]
    for version, verdict in on_servers(lambda server, each: found_in(each, server), versions):
        yield name_of(version), verdict
    scripts = probes() * 2 if not wanted or PROBES in wanted else []  # twice: some draw without a seed
    for script, verdict in on_servers(_watched_in_its_own, scripts):
        yield digest_of(script), verdict


def _watched_in_its_own(server: Server, script: Path) -> Verdict:
    folder = server.folder / script.stem
    folder.mkdir(exist_ok=True)
    return watched(server, script, folder)


def write(found: Mapping[str, Verdict]) -> None:
    """Write the record, in which what was not watched stays as it is."""
    checks = sorted(catalogue.checks())
    kept: dict[str, str] = {}
    if RECORD.exists():
        before, verdicts = recorded()
        kept = {
            name: "".join(dict(zip(before, each, strict=True)).get(c, "-") for c in checks)
            for name, each in verdicts.items()
        }
    kept |= {name: letters(verdict, checks) for name, verdict in found.items()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
    write_atomically(
        RECORD, f'{{\n "schema": 1,\n "checks": {json.dumps(checks)},\n "verdicts": {{\n{lines}\n }}\n}}\n'
    )


def main(names: list[str]) -> None:
    found: dict[str, Verdict] = {}
    checks = sorted(catalogue.checks())
    for name, verdict in all_watched(set(names)):
        if verdict.crashed or verdict.not_looked_at:
            print(f"{name}: not recorded: {verdict.crashed or verdict.not_looked_at}")
            continue
        if name in found and letters(found[name], checks) != letters(verdict, checks):
            raise SystemExit(f"{name}: another verdict the second time; give it a seed, or find the cause")
        changed = differences(name, verdict) if RECORD.exists() else {}
        print(f"{name}: {', '.join(f'{check} {how}' for check, how in changed.items()) or '-'}", flush=True)
        found[name] = verdict
    write(found)


if __name__ == "__main__":
    main(sys.argv[1:])
