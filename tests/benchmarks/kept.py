"""What becomes of a benchmark's figures: shown, compared with the recorded ones, or added to a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.baseline import throughput
from harness.baseline.compare import Verdict
from harness.baseline.files import baseline_path, hardware_class
from harness.errors import CannotTry
from harness.fingerprint import fingerprint, provenance
from harness.report.baseline import verdict_lines

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

    def __call__(self, name: str, ratios: Mapping[str, float], figures: Mapping[str, float], **remarks: str) -> None:
        __tracebackhide__ = True
        self.benchmark.extra_info.update({**remarks, **ratios, **figures})
        if self.update:
            throughput.add(
                self.folder,
                name,
                throughput.measured(name, ratios, figures),
                fingerprint=fingerprint(),
                started=STARTED,
                **provenance(),
            )
        elif self.path.exists():
            verdict = self.compared(name, ratios, figures)
            self.benchmark.extra_info["compared"] = verdict.outcome
            if verdict.outcome == "fails":
                pytest.fail("\n".join(verdict_lines([verdict])), pytrace=False)
        else:
            self.warn(pytest.PytestWarning(f"not compared: {self.missing}"))

    @property
    def path(self) -> Path:
        return baseline_path(self.folder, throughput.name_of(hardware_class(fingerprint())))

    @property
    def missing(self) -> str:
        return f"no baseline {self.path}; record one with --benchmark-only --harness-update, and accept it"

    def compared(self, name: str, ratios: Mapping[str, float], figures: Mapping[str, float]) -> Verdict:
        __tracebackhide__ = True
        try:
            return throughput.compare(throughput.Throughput.read(self.path), name, ratios, figures, fingerprint())
        except CannotTry as error:
            pytest.fail(f"harness: {error}", pytrace=False)

    def needs_baseline(self) -> None:
        if self.update or not self.path.exists():
            pytest.skip(self.missing)
