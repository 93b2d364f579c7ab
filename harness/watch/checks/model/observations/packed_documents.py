"""Packed documents: rows of several, and whether they see each other."""

from __future__ import annotations

from weakref import WeakSet

import torch
from torch import nn

from harness.watch.events import BackwardBegins, Fact, Forward
from harness.watch.facts.twins import LanguageTwin, differ, probing
from harness.watch.recogniser import Recogniser


class DocumentsPacked(Fact):
    """A copy of a model was asked about a row of several documents, with other tokens in the first."""

    needs = "rows of several documents with position ids of their own"
    place: int
    """Place of the first token of the second document."""
    they_see: bool
    """Whether the logits of the second changed."""
    masked: bool = False
    """Whether the model is given an attention mask."""


class PackedDocuments(Recogniser):
    makes = (DocumentsPacked,)

    def begin(self) -> None:
        self._asked: WeakSet[nn.Module] = WeakSet()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not event.at.sampled:
            return
        for forward in event.forwards:
            ids, positions = (forward.tensors.get(name) for name in ("input_ids", "position_ids"))
            if not forward.gradients or forward.model in self._asked or ids is None or positions is None:
                continue
            if ids.dim() == 2 and positions.shape == ids.shape and (border := _border(positions)) is not None:
                self._asked.add(forward.model)
                self._ask(forward, ids, *border)

    def _ask(self, forward: Forward, ids: torch.Tensor, row: int, place: int) -> None:
        """Change the first document of a row, and look at what is said of the one that begins at a place."""
        others = ids.clone()
        first_document = ids[row, :place]
        varies = bool((first_document != first_document[0]).any())
        others[row, :place] = first_document.roll(1) if varies else ids[row, place]
        with probing(self.monitor, f"whether packed documents see each other in {type(forward.model).__name__}"):
            twin = LanguageTwin(forward)
            before, again, after = twin.logits_with(), twin.logits_with(), twin.logits_with(input_ids=others)
            if not bool(differ(before, again).any()):
                changed = differ(before, after)[row]
                they_see = bool(changed[:place].any()) and bool(changed[place:].any())
                masked = forward.tensors.get("attention_mask") is not None
                self.tell(DocumentsPacked(place=place, they_see=they_see, masked=masked, where=forward.where))


def _border(positions: torch.Tensor) -> tuple[int, int] | None:
    """A row, and the place at which its second document of several tokens begins; None where there is none."""
    begins = (positions[:, 1:] == 0) & (positions[:, :-1] > 0)
    begins[:, -1:] = False  # a document of one token more says nothing
    for row, place in begins.nonzero().tolist():
        if positions[row, place + 2] == 1:  # and no padding, whose position ids may all be 0
            return row, place + 1
    return None
