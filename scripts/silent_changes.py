"""Whole runs with one silent change each, which the checks before the training would stop: what would the baseline say?

``python scripts/silent_changes.py --seeds 3`` trains the built-in recipe with each change, with seed 42 and new
ones, and prints what README says of it. The tests make the same changes to runs of a few updates.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import click
from torch.optim import Optimizer
from transformers import get_scheduler, set_seed

from harness.documented_run.baseline.compare import compare
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import DEFAULT_RECIPE, RECIPES, Recipe
from harness.documented_run.record import FILE_NAME, RunRecord, Verdict
from harness.documented_run.run import quiet_libraries, run_record
from harness.documented_run.stages import STAGES, Run
from harness.documented_run.stages.chain import without_datasets_cache
from harness.fingerprint import provenance

NOISE = 0.05
SKIPPED = 30
"""The update that is skipped."""


def lower_lr(run: Run) -> None:
    for group in run.optimizer.param_groups:
        group["lr"] = group["initial_lr"] = run.recipe.lr / 10


def slightly_higher_lr(run: Run) -> None:
    for group in run.optimizer.param_groups:
        group["lr"] = run.recipe.lr * 1.01


def skipped_update(run: Run) -> None:
    """One optimizer step changes nothing; the scheduler goes on."""
    number = count(1)

    def forget(optimizer: Optimizer, *_: object) -> None:
        if next(number) == SKIPPED:
            optimizer.zero_grad()

    run.optimizer.register_step_pre_hook(forget)


def no_scheduler(run: Run) -> None:
    run.lr_scheduler = get_scheduler("constant", optimizer=run.optimizer)


def frozen_backbone(run: Run) -> None:
    for parameter in run.model.base_model.parameters():
        parameter.requires_grad = False


def label_noise(run: Run) -> None:
    """One training label in twenty is turned round."""
    rows = run.raw_datasets["train"]
    turned = set(random.Random(0).sample(range(len(rows)), round(NOISE * len(rows))))
    label = run.recipe.label_column
    run.raw_datasets["train"] = rows.map(
        lambda row, index: {label: 1 - row[label] if index in turned else row[label]}, with_indices=True
    )


def nothing(run: Run) -> None:
    pass


CHANGES: dict[str, tuple[str, Callable[[Run], None]]] = {
    "learning rate a tenth": ("optimizer", lower_lr),
    "learning rate 1 % off": ("optimizer", slightly_higher_lr),
    "one skipped update": ("schedule", skipped_update),
    "no scheduler": ("schedule", no_scheduler),
    "frozen backbone": ("model", frozen_backbone),
    "5 % label noise": ("load", label_noise),
    "nothing": ("load", nothing),
}
"""By name: the stage after which the change is made, and the change."""


def changed_run(recipe: Recipe, name: str, updates: int | None = None) -> RunRecord:
    """A run with the change, of all updates or the first ones: all steps, no checks."""
    after, change = CHANGES[name]
    set_seed(recipe.seed)
    run, started = Run(recipe, updates), datetime.now(UTC).isoformat(timespec="seconds")
    with without_datasets_cache():
        for stage in STAGES:
            if stage.name != "equivalence":
                stage.do(run)
            if stage.name == after:
                change(run)
    return run_record(run, [], started=started, interrupted=False)


def verdicts(baseline: Baseline, records: Sequence[RunRecord]) -> list[Verdict]:
    """The comparisons of runs that claim the baseline's own data and weights, as silently changed ones would."""
    return compare(baseline, [record.model_copy(update={"inputs": baseline.inputs}) for record in records])


def lines(baseline: Baseline, records: Sequence[RunRecord]) -> Iterator[str]:
    seeds, new = len(records), [record for record in records if baseline.run(record.recipe["seed"]) is None]
    exact = verdicts(baseline, records)[0]
    yield f"  exact, {seeds} runs: {exact.outcome}" + "".join(f"; update {each.update}" for each in exact.findings[:1])
    for some in (new[:1], new):
        quality = verdicts(baseline, some)[1]
        yield f"  quality, {len(some)} new: {quality.outcome}; {'; '.join(quality.grounds)}"


@click.command()
@click.option("--seeds", default=3, help="How many new seeds each change is trained with.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("runs/silent-changes"))
def main(seeds: int, output: Path) -> None:
    """Train what is not there yet, and print what each comparison says."""
    quiet_libraries()
    commit = str(provenance()["commit"])[:8]
    baseline = Baseline.read(Path("baselines") / f"{DEFAULT_RECIPE}-plain-cpu.json")
    for name in CHANGES:
        click.echo(name)
        records = []
        for seed in (42, *range(1000, 1000 + seeds)):
            path = output / f"{commit}-{name.replace(' ', '-')}-{seed}" / FILE_NAME
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                changed_run(RECIPES[DEFAULT_RECIPE].with_(seed=seed), name).write(path)
            records.append(RunRecord.read(path))
        for line in lines(baseline, records):
            click.echo(line)


if __name__ == "__main__":
    main()
