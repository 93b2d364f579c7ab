"""Are clean reruns flagged as slower, and slowdowns found? ``python -m scripts.reruns``, on an idle machine.

The training of `tiny` is measured beside the document's again and again, as the benchmark does it, each time in a
process of its own: as it is, and with 3, 5 and 10 % of an update's time put into the loop. Each is compared with
``scripts/records/throughput-cpu.json``, and the last lines are a table for docs/baselines.md. What was measured is kept
in the output folder: an interrupted measurement goes on where it was.
"""

from __future__ import annotations

import math
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import click

from harness.documented_run.baseline.files import baseline_path, hardware_class
from harness.documented_run.recipe import DEFAULT_RECIPE
from harness.errors import CannotTry
from harness.files import read_model, write_atomically
from harness.fingerprint import fingerprint, provenance
from tests.benchmarks.contention import busy
from tests.benchmarks.paired import LOOKS, judged
from tests.benchmarks.recorded import RECORDS, RELATIVE, BenchmarkRun, Limit, Throughput, limits, measured, name_of

BENCHMARK = f"training-{DEFAULT_RECIPE}"
SLOWDOWNS = (0.0, 0.03, 0.05, 0.1)


def measure(path: Path, slowdown: float, limit: float, looks: Sequence[int] = LOOKS) -> None:
    """Measure the training, slowed down by a share of the document's update, and write it to the file."""
    from harness.documented_run.recipe import RECIPES
    from harness.documented_run.run import quiet_libraries
    from tests.benchmarks import benchmark_loops
    from tests.benchmarks.measure import TorchDevice, side_by_side

    quiet_libraries()
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    run = benchmark_loops.prepared(RECIPES[DEFAULT_RECIPE])
    document, device = benchmark_loops.Document(run), TorchDevice(run.device)
    if slowdown:
        delay = slowdown * benchmark_loops.update_seconds(document.train, device)
        run.progress_bar.update = lambda count: benchmark_loops.spin(delay)
    with benchmark_loops.watched_training(run) as ours:
        found = side_by_side(ours, document.train, device, limit=limit, looks=looks, say=click.echo)
    one = measured(BENCHMARK, {RELATIVE: found.ratio}, found.machine, {RELATIVE: found.interval})
    kept = BenchmarkRun(started=started, fingerprint=fingerprint(), benchmarks={BENCHMARK: one}, **provenance())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, kept.model_dump_json(indent=1) + "\n")


def in_its_own_process(target: Callable[..., None], *arguments: Any) -> None:
    """Which starts from nothing: from one process to the next the ratio differs.

    Raises:
        CannotTry: it failed; what it said is on stderr.
    """
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise CannotTry(f"a measurement ended with status {process.exitcode}")


def read(path: Path) -> BenchmarkRun:
    return read_model(path, BenchmarkRun, "measurement", "delete it and measure again")


def lines(limit: Limit, measurements: dict[float, list[BenchmarkRun]]) -> Iterator[str]:
    """The table, in Markdown: what is said of each slowdown, and how often it should be found.

    The stated power is that of the last look; its intervals are those that were measured, by the root of their blocks.
    """
    ones = {slowdown: [run.benchmarks[BENCHMARK] for run in runs] for slowdown, runs in measurements.items()}
    half = median(
        (one.intervals[RELATIVE].high - one.ratios[RELATIVE]) * math.sqrt(one.intervals[RELATIVE].blocks / LOOKS[-1])
        for each in ones.values()
        for one in each
    )
    yield "| slowdown | runs | slower | cannot tell | faster or equal | ratio | blocks | busy | stated power |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for slowdown, each in ones.items():
        told = Counter(
            judged(one.ratios[RELATIVE], one.intervals[RELATIVE], limit.value, busy(one.figures))[0] for one in each
        )
        ratios, blocks = ([pick(one) for one in each] for pick in (lambda one: one.ratios[RELATIVE], _blocks))
        loss = 1 - 1 / (1 + slowdown * limit.spread.mean)
        cells = (
            f"{slowdown:.0%}" if slowdown else "none",
            len(each),
            *(told[verdict] for verdict in ("slower", "cannot tell", "faster or equal")),
            f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
            f"{median(blocks):.0f}",
            sum(busy(one.figures) is not None for one in each),
            f"{limit.power(loss, half):.0%}",
        )
        yield f"| {' | '.join(map(str, cells))} |"


def _blocks(one: Any) -> int:
    return one.intervals[RELATIVE].blocks


@click.command()
@click.option("--clean", default=20, show_default=True, help="How many reruns without a slowdown.")
@click.option("--slowed", default=10, show_default=True, help="How many with each slowdown.")
@click.option("--baselines", type=click.Path(path_type=Path), default=RECORDS, show_default=False)
@click.option("--output", type=click.Path(path_type=Path), default=Path("runs/reruns"), show_default=True)
def main(clean: int, slowed: int, baselines: Path, output: Path) -> None:
    """Measure what is not there yet, and print the table."""
    here = fingerprint()
    baseline = Throughput.read(baseline_path(baselines, name_of(hardware_class(here))))
    limit = limits(baseline, BENCHMARK, here)[RELATIVE]
    assert limit is not None, "this ratio is compared on every machine"
    click.echo(
        f"limit {limit.value:.4f} from {limit.spread.mean:.4f} ± {limit.spread.deviation:.4f} of "
        f"{len(limit.spread.values)} recorded runs"
    )
    commit, measurements = str(provenance()["commit"])[:8], {}
    for slowdown in SLOWDOWNS:
        paths = [output / f"{commit}-{slowdown:g}-{number:02}.json" for number in range(slowed if slowdown else clean)]
        for path in paths:
            if not path.exists():
                in_its_own_process(measure, path, slowdown, limit.value)
            one = read(path).benchmarks[BENCHMARK]
            says = judged(one.ratios[RELATIVE], one.intervals[RELATIVE], limit.value, busy(one.figures))[1]
            click.echo(f"slowdown {slowdown:.0%}: {says}")
        if paths:
            measurements[slowdown] = [read(path) for path in paths]
    for line in lines(limit, measurements):
        click.echo(line)


if __name__ == "__main__":
    main()
