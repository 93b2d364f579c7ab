from __future__ import annotations

from weakref import WeakSet

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Forward
from harness.watch.facts.twins import LanguageTwin, asking, differ
from harness.watch.monitor import Monitor


class DocumentsSeeEachOther(Check):
    """Packed documents see each other: what the model says of one depends on the one before it in the row.

    ## Why is this a bug?
    Position ids that restart within a row say that another document begins there. They keep documents apart only if the
    attention is told so, too. The models of transformers read the boundaries from the position ids if they get no
    attention mask and use a kernel that can do it; with a mask of ones, or with a kernel that cannot, each document
    attends to all those before it. The model then learns from texts that have nothing to do with each other.

    ## What to do
    Leave attention_mask out of packed rows, or give a block-diagonal mask of four dimensions; use an attention that
    takes borders (`attn_implementation="flash_attention_2"`, or `"sdpa"` from transformers 4.53 on).

    ## When it is right
    When documents are joined on purpose, as in pretraining on a stream of text. Position ids that count through the
    whole row show this.

    ## References
    - https://github.com/huggingface/trl/pull/3673
    - https://huggingface.co/docs/trl/reducing_memory_usage#packing
    """

    status = "new"
    needs = "rows of several documents with position ids of their own"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.asked: WeakSet[nn.Module] = WeakSet()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self.monitor.is_sampled():
            return
        for forward in event.forwards:
            ids, positions = (forward.tensors.get(name) for name in ("input_ids", "position_ids"))
            if not forward.gradients or forward.model in self.asked or ids is None or positions is None:
                continue
            if ids.dim() == 2 and positions.shape == ids.shape and (border := _border(positions)) is not None:
                self.asked.add(forward.model)
                self._ask(forward, ids, *border)

    def _ask(self, forward: Forward, ids: torch.Tensor, row: int, place: int) -> None:
        """Change the first document of a row, and look at what is said of the one that begins at a place."""
        others = ids.clone()
        first_document = ids[row, :place]
        varies = bool((first_document != first_document[0]).any())
        others[row, :place] = first_document.roll(1) if varies else ids[row, place]
        with asking(self.monitor, f"whether packed documents see each other in {type(forward.model).__name__}"):
            twin = LanguageTwin(forward)
            before, again, after = twin.said(), twin.said(), twin.said(input_ids=others)
            if not bool(differ(before, again).any()):
                self.looked = True
                changed = differ(before, after)[row]
                self._judge(forward, bool(changed[:place].any()) and bool(changed[place:].any()), place)

    def _judge(self, forward: Forward, they_see: bool, place: int) -> None:
        if not they_see:
            return
        mask = "an" if forward.tensors.get("attention_mask") is not None else "no"
        self.found(
            expected="logits of a packed document that depend on no other document of its row",
            observed=f"position ids begin anew at place {place} of a row; with other tokens before that place the "
            f"logits behind it change: the documents attend to each other ({mask} attention mask is given)",
            where=forward.where,
            update=self.monitor.update,
        )


def _border(positions: torch.Tensor) -> tuple[int, int] | None:
    """A row, and the place at which its second document of several tokens begins; None where there is none."""
    begins = (positions[:, 1:] == 0) & (positions[:, :-1] > 0)
    begins[:, -1:] = False  # a document of one token more says nothing
    for row, place in begins.nonzero().tolist():
        if positions[row, place + 2] == 1:  # and no padding, whose position ids may all be 0
            return row, place + 1
    return None
