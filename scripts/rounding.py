"""How far rounding takes the losses of recorded seeds apart: the grounds of the band in the baselines' ``curve.py``.

``python -m scripts.rounding intel=runs/tiny-plain-42-… amd=FOLDER/candidates/tiny-plain-cpu.json`` lays whole runs that
were made on other machines, with other kernels, threads or versions beside the baseline, and adds them to
``tests/baseline/curves_elsewhere.json``, which the tests hold the band to. On one machine the environment variables
ATEN_CPU_CAPABILITY, MKL_CBWR and ONEDNN_MAX_CPU_ISA choose other kernels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from harness.documented_run.baseline.compare import baseline_of, comparable
from harness.documented_run.baseline.curve import band_of, relative, same_draws
from harness.documented_run.baseline.files import CANDIDATES
from harness.documented_run.baseline.stored import Baseline, SeedRun, seed_run
from harness.documented_run.record import RunRecord
from harness.errors import CannotTry
from harness.files import write_atomically

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "baseline" / "curves_elsewhere.json"
WINDOWS = (50, 100, 200, 400, 800, 1377)
"""The last update of each window that the largest distance is shown for."""


def measured(recorded: SeedRun, run: SeedRun) -> dict[str, Any]:
    """A run as the tests keep it: its losses as steps of float32 from the recorded ones, and where it was made."""
    losses = (np.array(each.curve, np.float32).view(np.int32).astype(np.int64) for each in (run, recorded))
    here = run.fingerprint
    return {
        "seed": run.seed,
        "fingerprint": {key: here[key] for key in sorted(here) if here[key] != recorded.fingerprint.get(key)},
        "metrics": run.metrics,
        "steps": [int(step) for step in np.subtract(*losses)],
    }


def lines(baseline: Baseline, recorded: SeedRun, run: SeedRun) -> Iterator[str]:
    distances = [relative(ours, theirs) for ours, theirs in zip(recorded.curve, run.curve, strict=True)]
    start = 0
    for end in WINDOWS:
        if distances[start:end]:
            yield f"  updates {start + 1} to {end}: at most {max(distances[start:end]):.1e} apart, relatively"
        start = end
    if band := band_of(baseline):
        yield f"  at most {max(band.taken(recorded.curve, run.curve)):.1%} of the band"


def read(path: Path) -> tuple[Baseline, list[SeedRun]]:
    """The baseline of a run or of a candidate's runs, and they.

    Raises:
        CannotTry: it is of another recipe than the recorded ones.
    """
    if path.parent.name == CANDIDATES:
        candidate = Baseline.read(path)
        baseline = Baseline.read(ROOT / "baselines" / path.name)
        if (candidate.recipe, candidate.inputs, candidate.lr) != (baseline.recipe, baseline.inputs, baseline.lr):
            raise CannotTry(f"{path} is of another recipe, other inputs or learning rates than the baseline")
        return baseline, candidate.runs
    record = RunRecord.read(path)
    baseline = Baseline.read(baseline_of(ROOT / "baselines", record))
    comparable(baseline, record)
    return baseline, [seed_run(record)]


def recorded_seed(baseline: Baseline, run: SeedRun) -> SeedRun:
    """What was recorded of the run's seed.

    Raises:
        CannotTry: nothing was, or the run's machine draws other masks.
    """
    recorded = baseline.run(run.seed)
    if recorded is None or not same_draws(recorded.fingerprint, run.fingerprint):
        raise CannotTry(f"seed {run.seed} was not recorded, or the run's machine draws other masks")
    return recorded


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="NAME=RUN…")
def main(runs: tuple[str, ...]) -> None:
    """Print how far each run is from the recorded one, and keep them for the tests, beside those that are there."""
    kept = json.loads(FILE.read_text())["runs"]
    for given, _, path in (each.partition("=") for each in runs):
        baseline, made = read(Path(path))
        for run in made:
            name, recorded = given if len(made) == 1 else f"{given}-{run.seed}", recorded_seed(baseline, run)
            click.echo(name)
            for line in lines(baseline, recorded, run):
                click.echo(line)
            kept[name] = measured(recorded, run)
    # One run a line: the steps are read by no one.
    listed = ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in kept.items())
    write_atomically(FILE, f'{{"runs": {{\n{listed}\n}}}}\n')


if __name__ == "__main__":
    main()
