"""Measure what watching costs as work grows: ``python -m scripts.scale [AXIS]...``.

Each point is a training of :mod:`scripts.scale.loop`: unwatched and under ``harness check --full``, three times in turn
or for two minutes, and once more with a clock around each fact and check. Seconds are the processor's, of one thread,
and the least of the three, since other work on the machine only adds. What was measured stands in
``scripts/records/scale.json``; a point that is there is measured again only with ``--anew``. ``docs/scale.md`` is
written from it.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import click
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from harness.files import write_atomically
from harness.fingerprint import fingerprint, provenance

ROOT = Path(__file__).parents[2]
LOOP = Path(__file__).with_name("loop.py")
KEPT, PAGE = ROOT / "scripts" / "records" / "scale.json", ROOT / "docs" / "scale.md"

LOOKED_AT = range(1, 8)
"""Places of updates in which tensors are looked at, without the very first, which makes what others use."""
ORDINARY = 16
"""From here on nine updates of ten are ordinary ones."""

AXES: dict[str, list[tuple[float, dict[str, float]]]] = {
    "parameters": [(n, {"parameters": n, "updates": 40, "rows": 400}) for n in (1e5, 1e6, 1e7, 1e8)],
    "modules": [(n, {"modules": n, "updates": 60, "rows": 600}) for n in (10, 50, 500, 5000)],
    "updates": [(n, {"parameters": 1e3, "updates": n, "rows": 1e4}) for n in (1e3, 1e4, 1e5)],
    "rows": [(n, {"parameters": 1e3, "updates": 200, "rows": n, "batch": n / 100}) for n in (1e3, 1e4, 1e5, 1e6)],
    "ranks": [(n, {"updates": 200, "rows": 1e3 * n}) for n in (1, 2, 4)],
}
"""By axis: the size, and the options of the loop."""

SIZES = ("parameters", "modules")
"""The axes that are a model's own."""

ROUNDS, ENOUGH = 3, 120.0
"""Of runs of both sides; after so many seconds no other is begun."""

UPDATES = 1377
"""Of the documented run."""


def started(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run the loop by this command; what it wrote, its processor seconds and its peak memory in bytes."""
    result = folder / "result.json"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}
    process = subprocess.Popen(  # noqa: S603
        [*command, "--result", str(result)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if not result.exists():
        raise click.ClickException(f"{' '.join(command)} ended with {process.returncode} and without a result")
    found: dict[str, Any] = json.loads(result.read_text())
    result.unlink()
    return found | {"processor": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024}


def measured(axis: str, size: float, options: Mapping[str, float]) -> dict[str, Any]:
    """One point."""
    loop = [str(LOOP), *(part for name, value in options.items() for part in (f"--{name}", str(int(value))))]
    python = [sys.executable]
    if axis == "ranks" and size > 1:
        python += ["-m", "torch.distributed.run", "--nproc-per-node", str(int(size))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shares = folder / "shares.json"
        check = ("check", "--in-place", "--full", *loop)  # its result is to stay
        sides = {"unwatched": [*python, *loop], "watched": [*python, "-m", "harness", *check]}
        runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
        start = time.monotonic()
        for number in range(ROUNDS):
            for side in sides if number % 2 == 0 else reversed(sides):
                runs[side].append(started(sides[side], folder))
            if time.monotonic() - start > ENOUGH:
                break
        if axis != "ranks":
            started([*python, "-m", "scripts.scale.clocked", str(shares), *check], folder)
        slowest = json.loads(shares.read_text()) if shares.exists() else {}
    return {
        "size": size,
        "parameters": runs["unwatched"][0]["parameters"],
        "modules": runs["unwatched"][0]["modules"],
        **{side: least(each) for side, each in runs.items()},
        "seconds": dict(sorted(slowest.items(), key=lambda each: -each[1])[:8]),
        "listeners": sum(slowest.values()),
    }


def summed_up(run: Mapping[str, Any]) -> dict[str, float]:
    """Of one run: processor seconds of an ordinary update, of one that is looked at, and of all; bytes.

    Of ordinary ones it is the lower quartile: other work on the machine empties the caches, and makes some slower.
    """
    seconds, held = run["seconds"], dict(run["held"])
    half = min(held, key=lambda place: abs(place - len(seconds) / 2))
    return {
        "ordinary": quantiles(seconds[ORDINARY:])[0],
        "looked_at": fmean(seconds[place] for place in LOOKED_AT),
        "updates": sum(seconds),
        "processor": run["processor"],
        "peak": run["peak"],
        "growth": held[max(held)] - held[half],
    }


def least(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of several runs of one side; with ``spread``, by how much their ordinary updates differ."""
    each = [summed_up(run) for run in runs]
    ordinary = [one["ordinary"] for one in each]
    return {name: min(one[name] for one in each) for name in each[0]} | {"spread": max(ordinary) - min(ordinary)}


def can_tell(point: Mapping[str, Any]) -> bool:
    """Whether watched ordinary updates differ from unwatched ones by more than either do among themselves."""
    return abs(cost(point, "ordinary")) > max(point[side]["spread"] for side in ("unwatched", "watched"))


def cost(point: Mapping[str, Any], name: str) -> float:
    return point["watched"][name] - point["unwatched"][name]


def exponent(points: Sequence[Mapping[str, Any]], name: str) -> float:
    """Of the power by which the cost grows between the two largest points: 1 is linear, 0 is not at all."""
    small, large = points[-2:]
    costs = cost(small, name), cost(large, name)
    return math.nan if min(costs) <= 0 else math.log(costs[1] / costs[0]) / math.log(large["size"] / small["size"])


def slope(points: Sequence[Mapping[str, Any]], name: str) -> float:
    """What one more of them costs, between the smallest point and the largest."""
    return (cost(points[-1], name) - cost(points[0], name)) / (points[-1]["size"] - points[0]["size"])


def slowest(point: Mapping[str, Any]) -> list[str]:
    """The facts and checks that took most, and their shares of what all of them took."""
    return [f"{name} {used / point['listeners']:.0%}" for name, used in list(point["seconds"].items())[:3]]


def page(kept: Mapping[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=select_autoescape(),
    )
    environment.filters |= {
        "ms": lambda seconds: f"{seconds * 1e3:.3g} ms",
        "more": lambda seconds: f"{seconds * 1e3:+.3g} ms",
        "mb": lambda size: f"{size / 1e6:,.0f} MB",
    }
    axes = {axis: kept["axes"].get(axis, []) for axis in AXES}
    last = next(reversed(axes["updates"]), None)
    return environment.get_template("page.md.jinja").render(
        axes=axes,
        plan=planned(kept["plan"], axes) if "plan" in kept else None,
        reload=kept.get("reload", []),
        updates=UPDATES,
        growth=last and cost(last, "growth") / (last["size"] / 2),
        whole=last and last["watched"]["updates"] / last["unwatched"]["updates"],
        cost=cost,
        can_tell=can_tell,
        slope=slope,
        exponent=exponent,
        slowest=slowest,
    )


def few_updates() -> dict[str, float]:
    """What updates of the documented run cost here: BERT of bert-base's shape, of random weights, on built-in rows."""
    import torch

    from harness.documented_run.recipe import RECIPES
    from harness.documented_run.run import quiet_libraries
    from tests.benchmarks import benchmark_loops
    from tests.benchmarks.benchmark_loops import Document, bert_base, prepared
    from tests.benchmarks.measure import content, flops

    quiet_libraries()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        recipe, _ = bert_base(RECIPES["bert-base"].with_(checkpoint=str(Path(folder, "none"))), Path(folder))
        document = Document(prepared(recipe))
    document.train()
    start = time.process_time()
    document.train()
    seconds = (time.process_time() - start) / benchmark_loops.UPDATES
    held = content(document.batches())
    return {
        "parameters": sum(p.numel() for p in document.model.parameters()),
        "modules": sum(1 for _ in document.model.modules()),
        "seconds": seconds,
        "flops": flops(document.train) / benchmark_loops.UPDATES,
        "tokens": held["tokens"] / benchmark_loops.UPDATES,
    }


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def loading_again(parameters: float) -> dict[str, float]:
    """What it takes to load a GPT-2 of about so many parameters again, and to ask it: seconds of the processor, the
    least of three times."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from harness.watch.reload import Order, loaded_again

    width = 64 * max(1, round((parameters / (12 * 12)) ** 0.5 / 64))
    layers = max(1, round(parameters / (12 * width**2)))
    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_embd=width, n_layer=layers, n_head=width // 64))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        seconds = []
        for _ in range(ROUNDS):
            start = _of_children()
            found = loaded_again(folder, Order(True, "GPT2LMHeadModel"), (), {"input_ids": torch.ones(2, 64).long()})
            seconds.append(_of_children() - start)
            assert found.error is None, found.error
    return {"parameters": sum(p.numel() for p in model.parameters()), "seconds": min(seconds)}


def planned(found: Mapping[str, Any], axes: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """What watching adds to such a run, by the slopes of parameters and modules."""
    both = [axes[axis] for axis in SIZES]
    if not all(len(points) > 1 for points in both):
        return {**found, "more": None}
    added = {
        name: sum(
            slope(points, name) * found[axis]
            for axis, points in zip(SIZES, both, strict=True)
            if name != "ordinary" or can_tell(points[-1])
        )
        for name in ("ordinary", "looked_at", "peak")
    }
    # As often as the monitor has it under --full.
    times = 8 + 256 // 10 + (UPDATES - 256) // 50
    more = (added["ordinary"] * UPDATES + added["looked_at"] * times) / (found["seconds"] * UPDATES)
    return {**found, **added, "times": times, "more": more}


@click.command()
@click.argument("axes", nargs=-1, type=click.Choice(list(AXES)))
@click.option("--plan", is_flag=True, help="Measure updates of bert-base, too.")
@click.option("--reload", is_flag=True, help="Measure what loading again what was saved takes.")
@click.option("--anew", is_flag=True, help="Measure points that are there, too.")
@click.option("--largest", type=float, default=math.inf, help="Leave out larger points.")
def main(axes: tuple[str, ...], plan: bool, reload: bool, anew: bool, largest: float) -> None:
    """Measure the points of these AXES, or of all, and write scripts/records/scale.json and docs/scale.md."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"axes": {}}
    for axis in axes or (() if plan or reload else AXES):
        points = {point["size"]: point for point in kept["axes"].get(axis, [])}
        for size, options in AXES[axis]:
            if size > largest or (size in points and not anew):
                continue
            points[size] = measured(axis, size, options)
            kept["axes"][axis] = [points[each] for each in sorted(points)]
            kept |= {"fingerprint": fingerprint(), "provenance": provenance()}
            write_atomically(KEPT, json.dumps(kept, indent=1) + "\n")
            found = points[size]
            click.echo(f"{axis} {size:g}: {cost(found, 'ordinary'):+.2g} s, {cost(found, 'looked_at'):+.2g} s")
    if plan:
        kept["plan"] = few_updates()
        write_atomically(KEPT, json.dumps(kept, indent=1) + "\n")
    if reload:
        kept["reload"] = [loading_again(size) for size in (1e6, 1e7, 1e8)]
        write_atomically(KEPT, json.dumps(kept, indent=1) + "\n")
    write_atomically(PAGE, page(kept))


if __name__ == "__main__":
    main()
