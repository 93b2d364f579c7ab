"""Labels: which of the latest batches the model was given, and with which labels it came."""

from __future__ import annotations

import torch

from harness.watch.bounded import Latest
from harness.watch.events import BackwardBegins, Batch
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import labels_of, tensors_in


class RecentLabels(Recogniser):
    """The labels of the latest batches."""

    def begin(self) -> None:
        self._recent = Latest[tuple[torch.Tensor, torch.Tensor | None]](most=4)  # what is mixed up is one or two off
        """Their largest tensor, by which a forward is known to be of it, and their labels."""

    def on_batch(self, event: Batch) -> None:
        if not self.monitor.is_sampled():
            self._recent.clear()
            return
        given = max((tensor for _, tensor in tensors_in(event.data)), key=lambda tensor: tensor.numel(), default=None)
        labels = labels_of(event.data)
        if given is not None:
            self._recent.append((given, None if labels is None else torch.tensor(labels, device="cpu")))

    def of(self, event: BackwardBegins) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
        """The labels of the batch that the model was given, and those of other batches of late."""
        if not event.forwards:
            return None, []
        tensors = [on_host(tensor).cpu() for tensor in event.forwards[-1].tensors.values()]
        own, others = None, []
        for given, labels in self._recent:
            if labels is not None:
                if any(equal(tensor, given.cpu()) for tensor in tensors):
                    own = labels
                else:
                    others.append(labels)
        return own, others


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)
