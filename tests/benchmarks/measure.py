"""Timing: on a device that works on its own, side by side, and in shares."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import torch
from torch.optim import Optimizer
from torch.utils.flop_counter import FlopCounterMode

from tests.benchmarks import contention, paired
from tests.benchmarks.paired import LOOKS, Interval

WARM_UP = 2
"""Blocks that are made before one counts."""

Clock = Callable[[], float]
Batch = dict[str, torch.Tensor]


class Device(Protocol):
    """What timing asks of a device."""

    def synchronize(self) -> None:
        """Return when everything that was started on the device has ended."""


class TorchDevice:
    """A device of torch's."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def timed(call: Callable[[], Any], device: Device, clock: Clock = time.perf_counter) -> float:
    """The seconds that the call takes, what it left to the device to do included, what was left before not."""
    device.synchronize()
    start = clock()
    call()
    device.synchronize()
    return clock() - start


@dataclass(frozen=True)
class SideBySide:
    """What timing two sides in blocks came to."""

    ratio: float
    """The speed of ours beside the reference's, the median over blocks."""
    interval: Interval
    ours: list[float]
    """The seconds of our rounds, two for each block."""
    reference: list[float]
    machine: dict[str, float]
    """What others took of the CPUs meanwhile."""

    @property
    def seconds(self) -> float:
        """Of a round of ours."""
        return median(self.ours)


def side_by_side(
    ours: Callable[[], Any],
    reference: Callable[[], Any],
    device: Device,
    *,
    limit: float | None = None,
    looks: Sequence[int] = LOOKS,
    say: Callable[[str], Any] = print,
    clock: Clock = time.perf_counter,
) -> SideBySide:
    """Time both sides in blocks until it is clear on which side of the limit the ratio is, or without one, what it is.

    ``say`` is told, before anything is timed, that the machine is busy.
    """
    if busy := contention.busy(contention.others()):
        say(f"before anything is timed: {busy}")
    order, rounds = (reference, ours, ours, reference), []

    def block() -> list[float]:
        return [timed(call, device, clock) for call in order]

    def kept() -> list[float]:
        rounds.append(block())
        return rounds[-1]

    for _ in range(WARM_UP):
        block()
    meter = contention.Meter()
    ratio, interval = paired.measure(kept, limit, looks)
    return SideBySide(
        ratio,
        interval,
        ours=[seconds for block in rounds for seconds in block[1:3]],
        reference=[seconds for block in rounds for seconds in block[::3]],
        machine=meter.figures(),
    )


class Laps:
    """Seconds by part: each lap is counted for the part that it ends, when the device has done what it was given."""

    def __init__(self, device: Device, clock: Clock = time.perf_counter) -> None:
        self.device, self.clock = device, clock
        self.seconds: dict[str, float] = {}
        device.synchronize()
        self._last = clock()

    def lap(self, part: str) -> None:
        self.device.synchronize()
        now = self.clock()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    @property
    def shares(self) -> dict[str, float]:
        """Of the whole time, by part."""
        whole = sum(self.seconds.values())
        return {part: seconds / whole for part, seconds in self.seconds.items()}


def split(model: Any, batches: Iterable[Batch], optimizer: Any, lr_scheduler: Any, device: Device) -> dict[str, float]:
    """The shares of data, forward, backward and optimizer in an update of the document's loop.

    The device is waited for after each part, which a loop does not do: the shares are right, the sum is not its time.
    """
    laps = Laps(device)
    for batch in batches:
        batch = {k: v.to(model.device) for k, v in batch.items()}
        laps.lap("data")
        loss = model(**batch).loss
        laps.lap("forward")
        loss.backward()
        laps.lap("backward")
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        laps.lap("optimizer")
    return laps.shares


def matmul_peak(device: torch.device, *, dtype: torch.dtype = torch.float32, repeats: int = 20) -> float:
    """The FLOP/s of a large square product (2 n^3 operations), the best that a training could come near to."""
    size = 8192 if device.type == "cuda" else 1024
    left, right = (torch.rand(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = [timed(lambda: left @ right, TorchDevice(device)) for _ in range(repeats + 3)][3:]
    return 2 * size**3 / median(seconds)


def flops(call: Callable[[], Any]) -> int:
    """The floating-point operations of the call's matrix products, as torch counts them."""
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def peak_memory(call: Callable[[], Any], model: torch.nn.Module, optimizer: Optimizer) -> dict[str, float]:
    """The most memory in bytes that a training holds at once on a GPU, by the name of the figure.

    Model and optimizer, and what the call needs beyond what is there before it: other models may lie beside this one.
    """
    device = next(model.parameters()).device
    if device.type != "cuda":
        return {}
    states = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    held = sum(each.nbytes for each in (*model.parameters(), *model.buffers(), *states) if each.device == device)
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    torch.cuda.synchronize(device)
    return {"peak_memory_bytes": float(held + torch.cuda.max_memory_allocated(device) - before)}


def content(batches: Iterable[Batch]) -> dict[str, float]:
    """What the batches hold: rows, tokens without padding, and the share of padding."""
    rows, tokens, places = 0, 0, 0
    for batch in batches:
        mask = batch["attention_mask"]
        rows, tokens, places = rows + len(mask), tokens + int(mask.sum()), places + mask.numel()
    return {"rows": rows, "tokens": tokens, "padding": 1 - tokens / places}
