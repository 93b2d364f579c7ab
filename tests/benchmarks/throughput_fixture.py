"""What becomes of a benchmark's figures: shown, compared with the recorded ones, or added to a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from harness.documented_run.baseline.files import baseline_path, hardware_class
from harness.errors import CannotTry
from harness.fingerprint import fingerprint, provenance
from tests.benchmarks import recorded
from tests.benchmarks.paired import Interval

MEASURING = ("only", "enable", "json", "save", "autosave", "compare")
"""pytest-benchmark's options that ask for the clock; without one a benchmark runs once, like any test."""

STARTED = datetime.now(UTC).isoformat(timespec="milliseconds")
"""Names this pytest run."""


def measures(config: pytest.Config) -> bool:
    return any(config.getoption(f"benchmark_{name}", None) for name in MEASURING)


@dataclass
class Keeper:
    """Called with what a benchmark came to: it goes into pytest-benchmark's JSON, and is compared or recorded."""

    benchmark: Any
    warn: Callable[[Warning], None]
    folder: Path
    update: bool
    measures: bool

    def __call__(
        self,
        name: str,
        ratios: Mapping[str, float],
        figures: Mapping[str, float],
        intervals: Mapping[str, Interval] | None = None,
        **remarks: str,
    ) -> None:
        """Keep what was measured.

        Raises:
            pytest.fail.Exception: it is slower than the recorded runs explain, or cannot be compared with them. Where
                it cannot be told, that is a warning.
        """
        __tracebackhide__ = True
        self.benchmark.extra_info.update({**remarks, **ratios, **figures})
        if self.update:
            measured = recorded.measured(name, ratios, figures, intervals)
            recorded.add(self.folder, name, measured, fingerprint=self.fingerprint, started=STARTED, **provenance())
            return
        if not self.path.exists():
            self.warn(pytest.PytestWarning(f"{name} not compared: {self.missing}"))
            return
        verdict = self.compared(name, ratios, figures, intervals)
        self.benchmark.extra_info["compared"] = [verdict.outcome, *verdict.grounds]
        if verdict.outcome == "fails":
            pytest.fail("\n".join(verdict.lines()), pytrace=False)
        for ground in verdict.grounds:
            if "not compared" in ground or "cannot tell" in ground:
                self.warn(pytest.PytestWarning(ground))

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        return fingerprint()

    @property
    def path(self) -> Path:
        return baseline_path(self.folder, recorded.name_of(hardware_class(self.fingerprint)))

    @property
    def missing(self) -> str:
        return (
            f"no baseline {self.path}; record two or more with --benchmark-only --harness-update, and accept them with "
            "python -m tests.benchmarks.accept"
        )

    def limit(self, name: str, ratio: str = recorded.RELATIVE) -> float | None:
        """What the ratio is held to; None while a baseline is recorded, or where there is none of it."""
        if self.update or not self.path.exists():
            return None
        try:
            limit = recorded.limits(recorded.Throughput.read(self.path), name, self.fingerprint).get(ratio)
        except CannotTry:  # which is said when the ratio is compared
            return None
        return limit.value if limit else None

    def compared(
        self,
        name: str,
        ratios: Mapping[str, float],
        figures: Mapping[str, float],
        intervals: Mapping[str, Interval] | None = None,
    ) -> recorded.SpeedVerdict:
        __tracebackhide__ = True
        try:
            baseline = recorded.Throughput.read(self.path)
            return recorded.compare(baseline, name, ratios, figures, self.fingerprint, intervals=intervals)
        except CannotTry as error:
            pytest.fail(f"harness: {error}", pytrace=False)

    def needs_baseline(self) -> None:
        """Skip the test while a baseline is recorded, or where there is none."""
        if self.update:
            pytest.skip("compares, while --harness-update records")
        if not self.path.exists():
            pytest.skip(self.missing)
