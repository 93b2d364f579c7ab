"""Twins: a copy of a language model in eval mode, which is asked for the logits of what the model was given,
changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from harness.torch_objects import unchanged_random_state
from harness.watch.events import Forward
from harness.watch.facts.replays import can_be_copied, copied, mapped
from harness.watch.locate import from_signal_handler

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

OF_THE_LOSS = ("labels", "shift_labels", "num_items_in_batch")
"""What a model is given for its loss: without it, it gives logits also where it computes its loss in chunks."""

DIFFERENT = 1e-4
"""Smallest difference of logits, as a share of the largest, that is no rounding. A guess: another order of sums, as
another mask's kernel has, makes a hundredth of it in float32, in which a copy computes."""


class Twin:
    """A copy of the model of a forward. ``question`` says in a note what is not known where it cannot be asked."""

    def __init__(self, monitor: Monitor, forward: Forward, question: str) -> None:
        self._monitor, self._forward, self._question = monitor, forward, question
        self._model = copied(forward.model) if can_be_copied(forward.model) else None
        if self._model is None:
            self._refuse("it cannot be copied")
        else:
            self._model.float().eval()

    def logits(self, **changed: torch.Tensor | None) -> torch.Tensor | None:
        """(rows, tokens, classes) for what the model was given, with some of it changed; None where it refuses."""
        if self._model is None:
            return None
        args = mapped(self._forward.args, _cloned)
        kwargs = {
            **{name: mapped(value, _cloned) for name, value in self._forward.kwargs.items() if name not in OF_THE_LOSS},
            **changed,
        }
        with unchanged_random_state(), torch.no_grad():
            try:
                output = self._model(*args, **kwargs)
            except Exception as error:
                if from_signal_handler(error):
                    raise
                self._refuse(f"{type(error).__name__}: {error}")
                return None
        found = Forward(0, self._model, args, kwargs, output).logits
        return found if found is not None and found.dim() == 3 else None

    def _refuse(self, why: str) -> None:
        self._model = None
        self._monitor.note(f"{self._question} of {type(self._forward.model).__name__} is not known ({why})")


def _cloned(value: Any) -> Any:
    copied = value.detach().clone()
    return copied.float() if torch.is_tensor(copied) and copied.is_floating_point() else copied


def differ(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """(rows, tokens): where logits of (rows, tokens, classes) are others, beyond rounding."""
    one, other = one.float(), other.float()
    return (one - other).abs().amax(-1) > DIFFERENT * one.abs().max()
