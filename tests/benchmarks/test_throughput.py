"""How fast the harness trains, evaluates and tokenizes: beside the document's own code, and beside the device's best.

``pytest tests/benchmarks --benchmark-only`` measures, and compares with the baseline of the hardware class; an ordinary
run goes through the same code once, without a clock. Both sides take turns in blocks of four rounds, so that a busy
machine is busy for both.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from tests.benchmarks.conftest import Stopwatch, Subject
from tests.benchmarks.contention import busy
from tests.benchmarks.recorded import ACHIEVED, RELATIVE
from tests.benchmarks.throughput_fixture import Keeper

FEW_LOOKS = (12, 24)
"""For rounds of a second and more."""


def test_training(stopwatch: Stopwatch, subject: Subject, throughput: Keeper) -> None:
    from tests.benchmarks.benchmark_loops import UPDATES, name_of, watched_training
    from tests.benchmarks.measure import content, flops, matmul_peak, peak_memory, split

    run, document = subject.run, subject.document
    name = name_of("training", run)
    peaks = [matmul_peak(run.device)]
    with watched_training(run) as ours:
        found = stopwatch(ours, document.train, subject.device, limit=throughput.limit(name))
    peaks.append(matmul_peak(run.device))
    held = content(document.batches())
    shares = split(document.model, document.batches(), document.optimizer, document.lr_scheduler, subject.device)
    assert held["rows"] == UPDATES * run.recipe.batch_size
    assert sum(shares.values()) == pytest.approx(1)
    if found is None:
        return
    figures = {
        "samples_per_second": held["rows"] / found.seconds,
        "tokens_per_second": held["tokens"] / found.seconds,
        "padding": held["padding"],
        **{f"share_{part}": share for part, share in shares.items()},
        **peak_memory(document.train, document.model, document.optimizer),
        **found.machine,
    }
    achieved = flops(document.train) / found.seconds / median(peaks)
    ratios, intervals = {RELATIVE: found.ratio, ACHIEVED: achieved}, {RELATIVE: found.interval}
    throughput(name, ratios, figures, intervals, weights=subject.weights)


def test_evaluation(
    stopwatch: Stopwatch, subject: Subject, throughput: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.utils.data import DataLoader

    from harness.documented_run.stages import evaluate
    from tests.benchmarks.benchmark_loops import EVAL_ROWS, name_of

    run, document = subject.run, subject.document
    name = name_of("evaluation", run)
    rows = document.eval_dataloader.dataset
    ours = DataLoader(rows, batch_size=run.recipe.batch_size, collate_fn=run.data_collator)
    monkeypatch.setattr(run, "eval_dl", ours)
    limit = throughput.limit(name)
    found = stopwatch(lambda: evaluate.evaluate(run), document.evaluate, subject.device, limit=limit)
    assert run.metrics.keys() == {"accuracy", "f1"}
    assert len(run.evaluation.metric_batches) == EVAL_ROWS // run.recipe.batch_size
    if found is not None:
        figures = {"rows_per_second": EVAL_ROWS / found.seconds, **found.machine}
        throughput(name, {RELATIVE: found.ratio}, figures, {RELATIVE: found.interval}, weights=subject.weights)


@pytest.mark.nightly
def test_tokenization(stopwatch: Stopwatch, subject: Subject, throughput: Keeper) -> None:
    from tests.benchmarks.benchmark_loops import name_of, tokenized, tokenized_bare

    run, ratio = subject.run, "map_per_tokenizer"
    name = name_of("tokenization", run)
    limit, sides = throughput.limit(name, ratio), (lambda: tokenized(run), lambda: tokenized_bare(run))
    found = stopwatch(*sides, subject.device, limit=limit, looks=FEW_LOOKS)
    rows = tokenized(run)
    assert rows["input_ids"][:8] == tokenized_bare(run)["input_ids"][:8]
    if found is not None:
        figures = {"rows_per_second": len(rows) / found.seconds, **found.machine}
        throughput(name, {ratio: found.ratio}, figures, {ratio: found.interval})


@pytest.mark.parametrize("place", ["collator", "loop"])
def test_a_slowdown_of_a_tenth_is_seen(
    stopwatch: Stopwatch, subject: Subject, throughput: Keeper, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Put into the collator or into the loop, it fails the comparison that a clean run passes."""
    from tests.benchmarks.benchmark_loops import name_of, spin, update_seconds, watched_training

    run, train = subject.run, subject.document.train
    if not throughput.measures:
        pytest.skip("needs a clock: --benchmark-only")
    throughput.needs_baseline()
    name, delay = name_of("training", run), 0.1 * update_seconds(train, subject.device)
    if place == "collator":
        collate = run.train_dl.collate_fn

        def slower(rows: Any) -> Any:
            spin(delay)
            return collate(rows)

        monkeypatch.setattr(run.train_dl, "collate_fn", slower)
    else:
        monkeypatch.setattr(run.progress_bar, "update", lambda count: spin(delay))
    with watched_training(run) as ours:
        found = stopwatch(ours, train, subject.device, limit=throughput.limit(name))
    assert found is not None
    if of_machine := busy(found.machine):
        pytest.skip(of_machine)
    verdict = throughput.compared(name, {RELATIVE: found.ratio}, {}, {RELATIVE: found.interval})
    assert any(finding.expected.startswith(RELATIVE) for finding in verdict.findings), verdict.grounds


def test_both_sides_go_through_the_same_batches(benchmark: Any, subject: Subject) -> None:
    import torch

    from tests.benchmarks.benchmark_loops import UPDATES

    first = benchmark.pedantic(lambda: list(subject.document.batches()), rounds=1)
    second = list(subject.document.batches())
    assert len(first) == UPDATES
    assert all(torch.equal(a["input_ids"], b["input_ids"]) for a, b in zip(first, second, strict=True))
    torch.manual_seed(subject.run.recipe.seed)
    ours = next(iter(subject.run.train_dl))
    assert torch.equal(first[0]["input_ids"].cpu(), ours["input_ids"].cpu())
