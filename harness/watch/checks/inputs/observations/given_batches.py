"""Given batches: whether the rows that a model is trained on differ, and whether they change as the loader's do."""

from __future__ import annotations

import torch

from harness.watch.events import BackwardBegins, Batch, End, Fact
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import content_digest, is_data


class RowsTrained(Fact):
    """A model is trained on a DataLoader's rows whose labels differ. ``where`` it was called."""

    needs = "labelled batches of a DataLoader"
    in_windows = "first"
    alike: int = 0
    """Batches so far, where all of their rows are the same; 0 where they are not, which is the last told."""
    largest: torch.Tensor | None = None
    """Largest tensor that the model was given, where the rows are the same."""


class BatchTrained(Fact):
    """A batch of a DataLoader is over that a model was trained on. ``where`` the model was called."""

    needs = "batches of a DataLoader"
    in_windows = "first"
    of_run = True
    drawn: int
    """Different batches that came since the model was given something else, this one included."""


class AlikeRows(Recogniser):
    makes = (RowsTrained,)
    _varied = False
    _row: bytes | None = None
    """The digest of the first row."""
    _batches = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self._varied or event.batch is None or not event.at.sampled:
            return
        given = [
            tensor
            for forward in event.forwards
            for name, tensor in forward.tensors.items()
            if name != "labels" and tensor.dim() > 0 and len(tensor) > 1
        ]
        if not given or not _labels_differ(event, rows=len(given[0])):
            return
        first = content_digest([tensor[0] for tensor in given])
        self._varied = self._row not in (None, first) or any(bool((tensor != tensor[:1]).any()) for tensor in given)
        self._row = first
        self._batches += 1
        alike = 0 if self._varied else self._batches
        largest = max(given, key=lambda tensor: tensor.numel()) if alike else None
        self.tell(RowsTrained(alike=alike, largest=largest, where=event.forwards[-1].where))


class GivenBatches(Recogniser):
    makes = (BatchTrained,)

    def begin(self) -> None:
        self._batch: Batch | None = None
        """The latest that was looked at."""
        self._now: set[bytes] = set()
        """Digests of what the model and the loss were given for it, of each backward pass."""
        self._labelled = False
        """Whether there were labels or targets among that."""
        self._where: str | None = None
        self._given: set[bytes] = set()
        """What they were given for the batch before."""
        self._drawn: set[bytes] = set()
        """Digests of the batches that came while they were given the same."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.batch is None or not event.forwards:
            return
        if event.batch is not self._batch:
            self._close()
            self._batch = event.batch if event.at.sampled else None
        given = [[each.args, each.kwargs] for each in event.forwards]
        if self._batch is None or not is_data(given):
            self._batch = None  # what is in an object of the script's own is not known
            return
        targets = [call.target for call in event.losses]
        self._labelled |= bool(targets) or "labels" in event.forwards[-1].tensors
        self._where = event.forwards[-1].where
        self._now.add(content_digest([given, targets]))

    def on_end(self, event: End) -> None:
        self._close()

    def _close(self) -> None:
        """Compare the batch that is over with those before."""
        batch, now, labelled = self._batch, self._now, self._labelled
        self._batch, self._now, self._labelled = None, set(), False
        if batch is None or not labelled:
            return
        if now != self._given:
            self._given, self._drawn = now, set()
        self._drawn.add(content_digest(batch.data))
        self.tell(BatchTrained(drawn=len(self._drawn), where=self._where))


def _labels_differ(event: BackwardBegins, rows: int) -> bool:
    """Whether the labels of two rows differ; those of a language model come flat, one for each token."""
    labels: list[torch.Tensor] = [call.target for call in event.losses]
    labels += [forward.tensors["labels"] for forward in event.forwards if "labels" in forward.tensors]
    by_row = [on_host(each).reshape(rows, -1) for each in labels if each.numel() and each.numel() % rows == 0]
    return any(bool((each != each[:1]).any()) for each in by_row)
