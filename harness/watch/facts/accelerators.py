"""Accelerators: whether backward passes that are to be accumulated are, and whose optimizer steps."""

from __future__ import annotations

from collections import Counter

from harness.watch.events import AcceleratorBackward, End, Fact, Step
from harness.watch.recogniser import Recogniser


class AcceleratorAccumulates(Fact):
    """A loop is over in which an Accelerator was told to accumulate. ``where`` is the first backward pass outside."""

    needs = "accumulation by an Accelerator"
    of_run = True
    micro_batches: int
    """For an update, as it was told."""
    entered: bool
    """Whether its ``accumulate`` was ever entered."""
    passes: int = 0
    """Backward passes outside it."""
    steps: int = 0
    """Optimizer steps since the first of them."""


class StepsWithAccelerator(Fact):
    """A loop is over that accumulates within ``accelerator.accumulate``. ``where`` made the optimizer."""

    needs = "accumulation by an Accelerator"
    of_run = True
    micro_batches: int
    """For an update, as the Accelerator was told."""
    passes: int
    """Backward passes within it."""
    steps: int = 0
    """Steps of the optimizer since the first of them."""


class Accelerators(Recogniser):
    makes = (AcceleratorAccumulates, StepsWithAccelerator)

    def begin(self) -> None:
        self._micro_batches = 1
        self._entered = False
        self._passes = 0
        self._steps = 0
        self._where: str | None = None
        self._passes_within = 0
        self._steps_within: Counter[str | None] = Counter()
        """Steps since the first of them, by where their optimizer was made: it may be gone at the end."""

    def on_accelerator_backward(self, event: AcceleratorBackward) -> None:
        if event.steps <= 1:
            return
        self._entered = self._entered or event.entered
        self._passes += not event.entered
        self._passes_within += event.entered
        self._micro_batches, self._where = event.steps, self._where or event.where

    def on_step(self, event: Step) -> None:
        self._steps += self._passes > 0
        if self._passes_within:
            self._steps_within[self.monitor.optimizers[event.optimizer].made] += 1

    def on_end(self, event: End) -> None:
        if self._micro_batches > 1:
            self.tell(
                AcceleratorAccumulates(
                    micro_batches=self._micro_batches,
                    entered=self._entered,
                    passes=self._passes,
                    steps=self._steps,
                    where=self._where,
                )
            )
        if self._passes_within:
            for made, steps in self._steps_within.items() or [(None, 0)]:
                many = self._micro_batches
                self.tell(StepsWithAccelerator(micro_batches=many, passes=self._passes_within, steps=steps, where=made))
