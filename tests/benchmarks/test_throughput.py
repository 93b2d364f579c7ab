"""How fast the harness trains, evaluates and tokenizes: beside the document's own code, and beside the device's best.

``pytest tests/benchmarks --benchmark-only`` measures, and compares with the baseline of the hardware class; an ordinary
run goes through the same code once, without a clock. Both sides take turns, round by round, so that a busy machine is
busy for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from torch.utils.data import DataLoader

from harness.baseline.throughput import ACHIEVED, RELATIVE
from harness.stages import evaluate
from tests.benchmarks.benchmark_loops import EVAL_ROWS, UPDATES, name_of, tokenized, tokenized_bare, watched_training
from tests.benchmarks.conftest import Subject
from tests.benchmarks.measure import content, flops, matmul_peak, peak_memory, split
from tests.benchmarks.throughput_fixture import Keeper

TRAINING_ROUNDS = 52
"""A slowdown of the training is what must be seen best."""


def side_by_side(
    benchmark: Any, ours: Callable[[], Any], reference: Callable[[], Any], subject: Subject, *, rounds: int = 20
) -> tuple[float, float] | None:
    """The median seconds of a round of ours, and of the other side's over ours; None without a clock."""

    def until_done() -> None:
        ours()
        subject.device.synchronize()

    benchmark.pedantic(until_done, setup=lambda: subject.clock(reference), rounds=rounds, warmup_rounds=4)
    if benchmark.disabled:
        return None
    seconds = benchmark.stats.stats.data
    pairs = zip(subject.reference[-len(seconds) :], seconds, strict=True)
    return median(seconds), median(theirs / mine for theirs, mine in pairs)


def test_training(benchmark: Any, subject: Subject, throughput: Keeper) -> None:
    run, document = subject.run, subject.document
    peaks = [matmul_peak(run.device)]
    with watched_training(run) as ours:
        found = side_by_side(benchmark, ours, document.train, subject, rounds=TRAINING_ROUNDS)
    peaks.append(matmul_peak(run.device))
    held = content(document.batches())
    shares = split(document.model, document.batches(), document.optimizer, document.lr_scheduler, subject.device)
    assert held["rows"] == UPDATES * run.recipe.batch_size
    assert sum(shares.values()) == pytest.approx(1)
    if found is None:
        return
    seconds, ratio = found
    figures = {
        "samples_per_second": held["rows"] / seconds,
        "tokens_per_second": held["tokens"] / seconds,
        "padding": held["padding"],
        **{f"share_{part}": share for part, share in shares.items()},
        **peak_memory(document.train, document.model, document.optimizer),
    }
    achieved = flops(document.train) / seconds / median(peaks)
    throughput(name_of("training", run), {RELATIVE: ratio, ACHIEVED: achieved}, figures, weights=subject.weights)


def test_evaluation(benchmark: Any, subject: Subject, throughput: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    run, document = subject.run, subject.document
    rows = document.eval_dataloader.dataset
    ours = DataLoader(rows, batch_size=run.recipe.batch_size, collate_fn=run.data_collator)
    monkeypatch.setattr(run, "eval_dl", ours)
    found = side_by_side(benchmark, lambda: evaluate.evaluate(run), document.evaluate, subject)
    assert run.metrics.keys() == {"accuracy", "f1"}
    assert len(run.evaluation.metric_batches) == EVAL_ROWS // run.recipe.batch_size
    if found is not None:
        seconds, ratio = found
        figures = {"rows_per_second": EVAL_ROWS / seconds}
        throughput(name_of("evaluation", run), {RELATIVE: ratio}, figures, weights=subject.weights)


@pytest.mark.slow
def test_tokenization(benchmark: Any, subject: Subject, throughput: Keeper) -> None:
    run = subject.run
    found = side_by_side(benchmark, lambda: tokenized(run), lambda: tokenized_bare(run), subject, rounds=9)
    rows = tokenized(run)
    assert rows["input_ids"][:8] == tokenized_bare(run)["input_ids"][:8]
    if found is not None:
        seconds, ratio = found
        throughput(name_of("tokenization", run), {"map_per_tokenizer": ratio}, {"rows_per_second": len(rows) / seconds})


def busy(seconds: float) -> None:
    """Work for so long; a sleep would be longer than asked for."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@pytest.mark.parametrize("place", ["collator", "loop"])
def test_a_slowdown_of_a_tenth_is_seen(
    benchmark: Any, subject: Subject, throughput: Keeper, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Put into the collator or into the loop, it fails the comparison that a clean run passes."""
    run = subject.run
    if not throughput.measures:
        pytest.skip("needs a clock: --benchmark-only")
    throughput.needs_baseline()
    subject.clock(subject.document.train)
    subject.clock(subject.document.train)
    delay = 0.1 * subject.reference[-1] / UPDATES
    if place == "collator":
        collate = run.train_dl.collate_fn
        monkeypatch.setattr(run.train_dl, "collate_fn", lambda rows: (busy(delay), collate(rows))[1])
    else:
        monkeypatch.setattr(run.progress_bar, "update", lambda count: busy(delay))
    with watched_training(run) as ours:
        found = side_by_side(benchmark, ours, subject.document.train, subject, rounds=TRAINING_ROUNDS)
    assert found is not None
    verdict = throughput.compared(name_of("training", run), {RELATIVE: found[1]}, {})
    assert any(finding.expected.startswith(RELATIVE) for finding in verdict.findings), verdict.grounds
