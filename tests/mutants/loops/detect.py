"""Watch every mutant and every variant of the corpus, and write down what was found.

    python -m tests.mutants.loops.detect

writes ``baselines/detection.json`` and the matrix in README.md. The scripts run in forks of one process that has
imported the libraries, so that a verdict takes about as long as its training.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.compat import no_progress_bars
from tests.mutants.loops.corpus import MUTANTS, SCRIPTS, UNSEEN, VARIANTS, LoopMutant, Unseen, Variant, edited

ROOT = Path(__file__).parents[3]
CHECKPOINT = ROOT / "harness" / "assets" / "tiny-bert"
DETECTION = ROOT / "baselines" / "detection.json"

README = ROOT / "README.md"
MARK, END = "<!-- detection -->", "<!-- end of detection -->"

AS_THEY_ARE = tuple(Variant(script.stem, script.name, ()) for script in sorted(SCRIPTS.glob("*.py")))
"""The scripts themselves."""

Case = LoopMutant | Variant | Unseen

CASES: tuple[Case, ...] = (*AS_THEY_ARE, *MUTANTS, *VARIANTS, *UNSEEN)

ROWS = {"train": 60, "validation": 20, "test": 10}
LIBRARIES = (
    *("torch", "datasets", "evaluate", "accelerate", "sklearn.metrics", "transformers"),
    *("harness.watch.hooks", "harness.watch.invariants", "harness.watch.script"),
)

PATIENCE = 120
"""Seconds after which a script is ended."""


@dataclass(frozen=True)
class Verdict:
    """What watching one script came to."""

    name: str
    updates: int
    findings: list[dict[str, Any]]
    notes: list[str]
    crashed: str | None
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Running:
    case: Case
    script: Path
    output: Path
    began: float = field(default_factory=time.perf_counter)


def detect(cases: Sequence[Case], *, at_once: int | None = None) -> Iterator[Verdict]:
    """Watch the scripts, as many at once as there are cores; the verdicts come as they are reached."""
    at_once = at_once or len(os.sched_getaffinity(0))
    os.environ["OMP_NUM_THREADS"] = "1"
    import_libraries()
    folder = Path(tempfile.mkdtemp(prefix="detect-"))
    try:
        data = folder / "data"
        in_fork(lambda: make_data(data))
        running: dict[int, _Running] = {}
        waiting = list(cases)
        while waiting or running:
            while waiting and len(running) < at_once:
                case = waiting.pop(0)
                work = folder / case.name
                work.mkdir()
                script = work / case.script
                script.write_text(edited(case.script, case.edits), encoding="utf-8")
                started = _Running(case, script, work / "verdict.json")
                running[_fork(lambda each=started: _watch(each, data))] = started  # type: ignore[misc]
            pid, _ = os.wait()
            yield _verdict(running.pop(pid))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def import_libraries() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    no_progress_bars()
    for name in ("AutoModelForSequenceClassification", "AutoTokenizer", "BertForSequenceClassification", "Trainer"):
        getattr(sys.modules["transformers"], name)  # imports what is behind it


def make_data(folder: Path) -> None:
    from harness.sources import builtin

    builtin.raw_datasets(seed=7, split_rows=ROWS).save_to_disk(str(folder))


def _fork(work: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.alarm(PATIENCE)
        work()
    finally:
        os._exit(0)


def in_fork(work: Any) -> None:
    os.waitpid(_fork(work), 0)


def _watch(running: _Running, data: Path) -> None:
    from harness.watch.script import check_script

    warnings.simplefilter("ignore")
    os.chdir(running.script.parent)
    found: dict[str, Any]
    try:
        watched = check_script(running.script.name, [str(data), str(CHECKPOINT)])
        found = {
            "updates": watched.updates,
            "findings": [finding.as_dict() for finding in watched.findings],
            "notes": watched.notes,
            "crashed": watched.crashed,
        }
    except Exception as error:  # noqa: BLE001 - the corpus goes on
        found = {"updates": 0, "findings": [], "notes": [], "crashed": f"{type(error).__name__}: {error}"}
    running.output.write_text(json.dumps(found))


def _verdict(ended: _Running) -> Verdict:
    seconds = time.perf_counter() - ended.began
    found = {"updates": 0, "findings": [], "notes": [], "crashed": f"ended without a verdict in {PATIENCE} s"}
    if ended.output.exists():
        found = json.loads(ended.output.read_text())
    return Verdict(ended.case.name, seconds=seconds, **found)


def recorded(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """What ``baselines/detection.json`` says, in the order of the corpus."""
    by_name = {verdict.name: verdict for verdict in verdicts}

    def entry(of: Case, **more: Any) -> dict[str, Any]:
        verdict = by_name[of.name]
        found = [{"check": each["check"], "update": each["update"]} for each in verdict.findings]
        about = {"name": of.name, "script": of.script, **more, "found": found}
        return {**about, "updates": verdict.updates, "seconds": round(verdict.seconds, 1)}

    return {
        "schema": 1,
        "mutants": [entry(each, check=each.check, case=each.case) for each in MUTANTS],
        "variants": [entry(each, warns=list(each.warns)) for each in (*AS_THEY_ARE, *VARIANTS)],
        "unseen": [entry(each, why=each.why) for each in UNSEEN],
    }


def matrix_lines(detection: dict[str, Any]) -> Iterator[str]:
    """README's matrix: by family, how many mutants are caught, by which check, and at which update."""
    mutants, variants = detection["mutants"], detection["variants"]
    caught = [each for each in mutants if [found["check"] for found in each["found"]] == [each["check"]]]
    flagged = [each for each in variants if [found["check"] for found in each["found"]] != each["warns"]]
    warned = sum(bool(each["warns"]) for each in variants)
    yield (
        f"{len(caught)} of {len(mutants)} mutants are caught by the check that they are meant for and by no other; "
        f"{len(flagged)} of {len(variants)} clean scripts are flagged ({warned} gets a warning, which says when it is "
        f"right); {len(detection['unseen'])} more bugs are known that no check sees."
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


def _when(mutant: dict[str, Any]) -> str:
    updates = [found["update"] for found in mutant["found"] if found["check"] == mutant["check"]]
    if not updates:
        return "missed"
    return "evaluation" if updates[0] is None else str(updates[0])


def write(detection: dict[str, Any]) -> None:
    """Into the baseline, and into README between its marks."""
    DETECTION.write_text(json.dumps(detection, indent=1) + "\n", encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(MARK + "\n", 1)
    _, after = rest.split(END + "\n", 1)
    lines = "\n".join(matrix_lines(detection))
    README.write_text(f"{before}{MARK}\n{lines}\n{END}\n{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write all verdicts to this file, and nothing else")
    parser.add_argument("names", nargs="*", help="only these mutants and variants")
    given = parser.parse_args()
    cases = [case for case in CASES if not given.names or case.name in given.names]
    verdicts = []
    for verdict in detect(cases):
        verdicts.append(verdict)
        checks = ", ".join(f"{each['check']}@{each['update']}" for each in verdict.findings) or "-"
        print(f"{len(verdicts):3}/{len(cases)} {verdict.name}: {checks} {verdict.crashed or ''}", file=sys.stderr)
    if given.json:
        given.json.write_text(json.dumps([verdict.as_dict() for verdict in verdicts], indent=1))
    elif not given.names:
        write(recorded(verdicts))


if __name__ == "__main__":
    main()
