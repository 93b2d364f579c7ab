"""Scored passes: what a model said of the rows of a pass over a DataLoader without training, and what that came to.

An evaluation of any kind, with or without a loader, is in :mod:`harness.watch.run.evaluations`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch

from harness.watch.bounded import First, FirstByKey
from harness.watch.events import BackwardBegins, End, Forward, SchedulerStep, StateAsked
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import labels_of

if TYPE_CHECKING:
    from harness.watch.events import Pass

MOST_ROWS = 200_000
"""Rows of one evaluation that are kept for comparison: what is worth its memory."""


@dataclass(eq=False)
class ScoredPass:
    """What a model said in one pass without training."""

    of: Pass | None = None
    """None until something was evaluated."""
    logits: list[torch.Tensor] = field(default_factory=list)
    """(rows, classes) of each batch, on the CPU."""
    labels: list[int] = field(default_factory=list)
    batches: set[int] = field(default_factory=set)
    usable: bool = True
    """Whether logits and labels of each row are known, once."""
    told: bool = False
    """Whether its result is in the history."""

    @property
    def likeliest(self) -> torch.Tensor:
        """The likeliest class of each row."""
        return torch.cat([logits.argmax(1) for logits in self.logits])


class Result(NamedTuple):
    """What one evaluation came to."""

    updates_made: int
    accuracy: float
    loss: float


class ScoredPasses(Recogniser):
    """The pass at hand, and the results of those before."""

    def begin(self) -> None:
        self.latest = ScoredPass()
        self._agreed = FirstByKey[tuple[int, int], torch.Tensor](16)  # each has as many numbers as rows
        """Number and hash of labels to the class of each row that was likeliest in all earlier evaluations of the same
        labels, or -1."""
        self.history = First[Result](256)  # more than epochs are usually made
        """Results in their order, each once: what comes after an evaluation says that it is over."""

    def on_forward(self, event: Forward) -> None:
        if event.gradients or event.batch is None or event.batch.of.trains:
            return
        if event.batch.of is not self.latest.of:
            self._keep_agreed()
            self.latest = ScoredPass(event.batch.of)
        now = self.latest
        if event.batch.number in now.batches or len(now.labels) > MOST_ROWS:
            now.usable = False  # several forwards of a batch are an ensemble, or something of the script's own
            return
        logits = event.logits
        labels = labels_of(event.batch.data) or labels_of(event.tensors)
        if logits is None or labels is None or logits.dim() != 2 or len(labels) != len(logits) or logits.shape[1] < 2:
            now.usable = False
            return
        now.batches.add(event.batch.number)
        # A copy: that the script itself keeps its outputs is seen by their memory (Pass.keeps_outputs).
        now.logits.append(on_host(logits).to("cpu", torch.float32, copy=True))
        now.labels += labels

    def agreed(self) -> torch.Tensor | None:
        """The class of each row that was likeliest in all earlier evaluations of the latest one's rows, -1 where they
        differ; None if there was none."""
        return self._agreed.get(_key(self.latest.labels))

    def _keep_agreed(self) -> None:
        over = self.latest
        if not over.usable or not over.labels:
            return
        likeliest, before = over.likeliest, self.agreed()
        if before is not None:
            likeliest = torch.where(before == likeliest, likeliest, -1)
        self._agreed[_key(over.labels)] = likeliest

    def on_state_asked(self, event: StateAsked) -> None:
        self._tell()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._tell()

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        if event.metric is not None:
            self._tell()

    def on_end(self, event: End) -> None:
        self._tell()

    def _tell(self) -> None:
        now = self.latest
        if now.told or not now.usable or not now.labels or self.history.is_full:
            return
        now.told = True
        logits, labels = torch.cat(now.logits), torch.tensor(now.labels, device="cpu")
        if bool((labels < 0).any()) or int(labels.max()) >= logits.shape[1]:
            return
        accuracy = float((logits.argmax(1) == labels).float().mean())
        loss = float(torch.nn.functional.cross_entropy(logits, labels))
        self.history.append(Result(self.monitor.updates_made, accuracy, loss))


def _key(labels: list[int]) -> tuple[int, int]:
    return len(labels), hash(tuple(labels))
