from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Forward, positional
from harness.watch.facts.labels_given import generates
from harness.watch.facts.twins import LanguageTwin, asking, differ
from harness.watch.monitor import Monitor


class PositionsCountPadding(Check):
    """Rows are padded on the left, and the positions of their tokens count the padding.

    ## Why is this a bug?
    A model with absolute positions assumes that the first token of a row is at position 0 unless it is told otherwise.
    Padded on the left and without `position_ids`, a text begins at a different position in each batch. `generate()`
    makes position ids from the attention mask, so in use the text begins at 0 again: the model is used in a way that it
    was not trained for.

    ## What to do
    Pad on the right in training, or give position_ids: `(attention_mask.cumsum(-1) - 1).clamp(min=0)`.

    ## When it is right
    Models with relative positions (RoPE, ALiBi) give the same output either way and are not reported: the check tries
    it on a copy of the model. A model that is used exactly as it was trained, without `generate()`, may stay as it is.

    ## References
    - https://huggingface.co/docs/transformers/llm_tutorial#padding-side
    - https://github.com/tloen/alpaca-lora/issues/315
    """

    status = "new"
    needs = "language model with rows padded on the left"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.asked: WeakSet[nn.Module] = WeakSet()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self.monitor.is_sampled():
            return
        for forward in event.forwards:
            ids, mask = (forward.tensors.get(name) for name in ("input_ids", "attention_mask"))
            if not forward.gradients or forward.model in self.asked or ids is None or mask is None:
                continue
            if ids.dim() != 2 or mask.shape != ids.shape or not generates(forward.model):
                continue
            left = (mask[:, 0] == 0) & (mask != 0).any(1)
            if not left.any():
                continue
            if forward.tensors.get("position_ids") is not None:
                self.looked = True
            elif _takes_positions(forward.model):
                self.asked.add(forward.model)
                self._ask(forward, mask, left)

    def _ask(self, forward: Forward, mask: torch.Tensor, left: torch.Tensor) -> None:
        of_the_text = (mask.long().cumsum(-1) - 1).clamp(min=0)
        with asking(self.monitor, f"whether padding on the left moves the positions of {type(forward.model).__name__}"):
            twin = LanguageTwin(forward)
            others = differ(twin.said(), twin.said(position_ids=of_the_text)) & (mask != 0) & left[:, None]
            self.looked = True
            if bool(others.any()):
                self.found(
                    expected="position ids that begin at 0 with the first token of a text, as generate() makes them",
                    observed=f"{int(left.sum())} of {len(left)} rows are padded on the left without position_ids, and "
                    "with position_ids that begin at the text the model gives other logits",
                    where=forward.where,
                    update=self.monitor.update,
                )


def _takes_positions(model: nn.Module) -> bool:
    find: Callable[[], nn.Module] | None = getattr(model, "get_base_model", None)  # of PEFT
    return "position_ids" in positional(model if find is None else find())
