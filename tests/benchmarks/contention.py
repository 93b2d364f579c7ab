"""What others took of the CPUs while something was measured."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

TAKEN = "cpu_taken"
"""The share of all CPU time that was not this process's: other processes', the kernel's and stolen, 0 to 1."""

STOLEN = "cpu_stolen"
"""The part of it that the hypervisor gave to other virtual machines."""

LOAD = "load_per_cpu"
"""Processes that ran or waited on average over the last minute, this one's threads among them, for each CPU."""

MOST_TAKEN = 0.1
"""From here on a machine is busy. Both sides of a pair lose alike, so what is left is how differently they lose: where
one loses a tenth more than the other, a tenth of the CPU shifts the ratio by a hundredth, which is what recorded runs
differ by. One other process that computes takes an eighth of eight CPUs."""

MOST_LOAD = 1.5
"""The same, where the system does not tell CPU times: half as many again as there are CPUs. This process alone brings
it to 1."""

ASLEEP = 0.5
"""Seconds for which this process sleeps to see what others do: fifty ticks of the kernel's clock on each CPU."""


@dataclass(frozen=True)
class Times:
    """Seconds since the start, over all CPUs."""

    whole: float
    idle: float
    stolen: float

    @classmethod
    def now(cls) -> Times | None:
        """None where the system does not tell."""
        try:
            times = psutil.cpu_times()._asdict()
        except (OSError, NotImplementedError):
            return None
        whole = sum(
            seconds for kind, seconds in times.items() if not kind.startswith("guest")
        )  # which is in user, nice
        return cls(whole, times["idle"] + times.get("iowait", 0.0), times.get("steal", 0.0))


def own_time() -> float:
    """CPU seconds of this process and of those that it waited for."""
    own: float = sum(psutil.Process().cpu_times()[:4])
    return own


@dataclass(frozen=True)
class Meter:
    """Reads the counters at the start and the end, so that nothing in between is missed."""

    start: Times | None = field(default_factory=Times.now)
    own: float = field(default_factory=own_time)

    def figures(self) -> dict[str, float]:
        """What was seen since the meter was made, by the name of the figure, where the system tells it."""
        found: dict[str, float] = {}
        end = Times.now()
        if self.start and end and (whole := end.whole - self.start.whole) > 0:
            idle, own = end.idle - self.start.idle, own_time() - self.own
            found[TAKEN] = min(max((whole - idle - own) / whole, 0.0), 1.0)  # the two clocks tick apart
            found[STOLEN] = (end.stolen - self.start.stolen) / whole
        with suppress(OSError, AttributeError):
            found[LOAD] = psutil.getloadavg()[0] / (psutil.cpu_count() or 1)
        return found


def others(seconds: float = ASLEEP) -> dict[str, float]:
    """What others do while this process sleeps; the load of the last minute is left out, which may be its own."""
    meter = Meter()
    time.sleep(seconds)
    return {name: value for name, value in meter.figures().items() if name != LOAD}


def busy(figures: Mapping[str, float]) -> str | None:
    """That the machine was busy, in words; None where it was not, or nobody knows."""
    if (taken := figures.get(TAKEN)) is not None:
        return f"the machine was busy, {taken:.0%} of the CPU taken by others" if taken >= MOST_TAKEN else None
    if (load := figures.get(LOAD, 0.0)) > MOST_LOAD:
        return f"the machine was busy, {load:.1f} processes ran or waited for each CPU"
    return None
