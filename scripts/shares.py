"""How much of what results vary by is the head's, the order's and dropout's: trainings that differ in one seed.

``python -m scripts.shares [--seeds 8] [--recipe tiny]`` trains an epoch for each seed of each factor, the others fixed,
and prints a table for docs/runs.md: the standard deviation of accuracy, F1 and the validation loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import stdev

import torch

from harness.documented_run.loops import plain
from harness.documented_run.metrics import load_metric
from harness.documented_run.recipe import load_recipe
from harness.documented_run.stages import STAGES, Run
from harness.documented_run.stages.measures.losses import FACTORS, twin_of_seeds
from harness.documented_run.stages.model import evaluated
from harness.documented_run.stages.replays.replays import replayed

FIRST = 42


def results(run: Run, factors: tuple[str, ...], seeds: int) -> Iterator[dict[str, float]]:
    """What an epoch ends in, for each seed of these factors together."""
    for seed in range(FIRST, FIRST + seeds):
        other = twin_of_seeds(run, len(run.train_dl), {name: seed if name in factors else FIRST for name in FACTORS})
        replayed(other)
        losses = [evaluated(other, batch).loss.item() * len(batch["labels"]) for batch in run.eval_dataloader]
        metric = load_metric(run.recipe.metrics)
        scores = plain.evaluate(other.model, run.eval_dataloader, metric, torch.device("cpu"))
        yield scores | {"loss": sum(losses) / len(run.model_datasets["validation"])}


def main() -> None:
    parser = argparse.ArgumentParser(description="How much head, order and dropout vary the results.")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--recipe", default="tiny")
    arguments = parser.parse_args()
    run = Run(load_recipe(arguments.recipe).with_(epochs=1))
    for stage in STAGES[: [stage.name for stage in STAGES].index("model") + 1]:
        stage.do(run)
    print("| another seed for | accuracy | F1 | validation loss |")
    print("| --- | ---: | ---: | ---: |")
    for name, factors in [*((factor, (factor,)) for factor in FACTORS), ("all three", FACTORS)]:
        found = list(results(run, factors, arguments.seeds))
        spread = [f"{stdev(each[key] for each in found):.4f}" for key in ("accuracy", "f1", "loss")]
        print(f"| {name} | {' | '.join(spread)} |", flush=True)


if __name__ == "__main__":
    main()
