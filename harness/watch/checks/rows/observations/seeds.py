"""Seeds: whether the random numbers of a training begin again, because it is seeded as it was before."""

from __future__ import annotations

import torch

from harness.watch.bounded import LatestByKey
from harness.watch.bus import Recogniser
from harness.watch.checks.rows.observations.orders import MOST
from harness.watch.events import Batch, Fact, OptimizerMade, Seeded, Step


class SeededAgain(Fact):
    """torch's random numbers were seeded between two updates of a training. ``where`` they were."""

    needs = "seeds that torch is given while a training goes on over a DataLoader"
    seed: int
    before: int | None = None
    """The update before which it was seeded with this seed, too; None where it was not, or where the state was put back
    before the update."""
    times: int = 0
    """Updates so far that were made with random numbers that began again."""


class Seeds(Recogniser):
    makes = (SeededAgain,)

    def begin(self) -> None:
        self._latest: tuple[int, str | None] | None = None
        """The seed that was given since the latest update, and where."""
        self._at_batch: torch.Tensor | None = None
        """The state when the batch at hand was given, where that seed is still in force."""
        self._used = LatestByKey[int, int](MOST)
        """Seed to the update before which it was first given."""
        self._times = 0

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        """Another training may begin as this one did."""
        self._used.clear()

    def on_seeded(self, event: Seeded) -> None:
        if event.library == "torch" and event.where is not None and event.at.updates_made:
            self._latest = torch.initial_seed(), event.where

    def on_batch(self, event: Batch) -> None:
        """A seed that was put back (fork_rng, set_rng_state) is not in force any more."""
        seeded = self._latest is not None and torch.initial_seed() == self._latest[0]
        self._at_batch = torch.get_rng_state() if seeded else None

    def on_step(self, event: Step) -> None:
        latest, state = self._latest, self._at_batch
        self._latest = self._at_batch = None
        if latest is None:
            return
        (seed, where), now = latest, event.at.update
        if torch.initial_seed() != seed:
            self.tell(SeededAgain(seed=seed, where=where))
            return
        if state is None or torch.equal(state, torch.get_rng_state()):
            return  # nothing was drawn for this update
        before = self._used.get(seed)
        self._times += before is not None
        self._used.setdefault(seed, now)
        self.tell(SeededAgain(seed=seed, before=before, times=self._times, where=where))
