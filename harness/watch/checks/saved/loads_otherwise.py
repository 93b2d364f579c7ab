from __future__ import annotations

import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness import launch
from harness.torch_objects import unchanged_random_state
from harness.watch.check import Check
from harness.watch.events import End, Forward, ModelSaved
from harness.watch.facts.replays import can_be_copied, copied
from harness.watch.facts.twins import OF_THE_LOSS
from harness.watch.locate import from_signal_handler
from harness.watch.monitor import Monitor
from harness.watch.reload import Reloaded, loaded_again

ROWS = 2
"""Rows that the model is asked about."""

MOST_FOLDERS = 2
"""Folders that are loaded again, the latest ones: a few seconds each."""

PRECISE, COARSE = 1e-3, 5e-2
"""Largest difference of logits, as a share of the largest, that loading may make: other kernels in float32, and
rounding to half precision. Guesses."""

SHOWN = 3
"""Names that are said."""


@dataclass(frozen=True)
class Kept:
    """A model as it was when it was saved."""

    named: str
    """The class of transformers, without an adapter around it."""
    labels: int | None
    inputs: dict[str, torch.Tensor]
    logits: torch.Tensor
    where: str | None
    update: int


class LoadsOtherwise(Check):
    """A saved model gives other predictions when it is loaded again.

    ## Why is this a bug?
    The training was right, and what is on the disk is something else: the head or new embeddings were not saved with an
    adapter, an adapter was left out of the model that was exported, a wrapper gave the tensors other names. Libraries
    load what matches and say little about the rest, which stays random or is the base's.

    ## What to do
    Load the folder in a new process, as whoever uses it will, and compare the predictions. With an adapter, name what
    is trained besides in `modules_to_save`, set `task_type`, and save with the PeftModel, or merge it first
    (`merge_and_unload`). Save the unwrapped model.

    ## When it is right
    Models that their user is meant to complete: a base without its head, or parts of a pipeline. A folder that
    transformers and PEFT cannot load by themselves (a base that is in no folder) is not judged, and a note says so; nor
    is a class of your own, or a model that says something else each time.

    ## References
    - https://github.com/huggingface/peft/issues/577
    - https://huggingface.co/docs/peft/developer_guides/checkpoint
    """

    id = "saved::loads-otherwise"
    status = "new"
    needs = "model that save_pretrained saved after its updates"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.asked: WeakKeyDictionary[nn.Module, dict[str, torch.Tensor]] = WeakKeyDictionary()
        """Of each model that was called, two rows of what it was given."""
        self.latest: dict[str, torch.Tensor] = {}
        self.saved: dict[str, Kept] = {}
        """By the folder, in the order of the latest saves."""

    def on_forward(self, event: Forward) -> None:
        if "input_ids" in event.kwargs and not event.args and event.model not in self.asked:
            has_decoder = getattr(getattr(event.model, "config", None), "is_encoder_decoder", False)
            self.asked[event.model] = self.latest = _first_rows(event.tensors, () if has_decoder else OF_THE_LOSS)

    def on_model_saved(self, event: ModelSaved) -> None:
        model, inputs = event.model, self.asked.get(event.model, self.latest)
        if not self.monitor.stepped or not inputs or not can_be_copied(model) or not launch.is_main_process():
            return
        twin = copied(model)
        if twin is None:
            return
        logits, again = (_logits(twin.eval(), inputs) for _ in range(2))
        if logits is not None and again is not None and torch.equal(logits, again):
            inner = (
                model.get_base_model() if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else model
            )
            labels = getattr(inner.config, "num_labels", None) if "Classification" in type(inner).__name__ else None
            if not _is_of_transformers(type(inner)):
                return
            kept = Kept(type(inner).__name__, labels, inputs, logits, event.where, self.monitor.updates_made)
            folder = os.path.abspath(event.folder)
            self.saved.pop(folder, None)
            self.saved[folder] = kept

    def on_end(self, event: End) -> None:
        for folder, kept in list(self.saved.items())[-MOST_FOLDERS:]:
            if os.path.isdir(folder):
                self._compare(folder, kept, loaded_again(folder, kept.named, kept.labels, kept.inputs))

    def _compare(self, folder: str, kept: Kept, found: Reloaded) -> None:
        shown = os.path.relpath(folder)
        if found.error is not None or found.logits is None:
            self.monitor.note(f"what was saved in {shown} was not loaded again, so it is not judged: {found.error}")
            return
        self.looked = True
        scale = float(kept.logits.abs().max())
        apart = float((found.logits - kept.logits).abs().max()) if found.logits.shape == kept.logits.shape else scale
        if apart <= (COARSE if found.coarse else PRECISE) * scale + 1e-6:
            return
        lacks = f"; not in it, and so left as they were made: {_names(found.missing)}" if found.missing else ""
        more = f"; in it and not used: {_names(found.unexpected)}" if found.unexpected else ""
        self.found(
            expected="the logits that the model had when it was saved",
            observed=f"loaded from {shown} in a new process, they are up to {apart / scale:.2g} of the largest apart"
            f"{lacks}{more}",
            where=kept.where,
            update=kept.update,
        )


def _logits(model: nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor | None:
    """What a copy says; None where it refuses, or gives none."""
    device = next(model.parameters()).device
    with unchanged_random_state(), torch.no_grad():
        try:
            logits = model(**{name: value.to(device) for name, value in inputs.items()}).logits
        except Exception as error:
            if from_signal_handler(error):
                raise
            return None
    return logits.float().cpu() if torch.is_tensor(logits) else None


def _first_rows(tensors: dict[str, torch.Tensor], without: Collection[str]) -> dict[str, torch.Tensor]:
    rows = len(tensors["input_ids"])
    return {
        name: value.detach()[:ROWS].cpu().clone()
        for name, value in tensors.items()
        if name not in without and value.dim() and len(value) == rows
    }


def _is_of_transformers(kind: type) -> bool:
    """Whether the library has the class itself, and not the script one of its name."""
    return kind.__module__.startswith("transformers.") and hasattr(sys.modules.get("transformers"), kind.__name__)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
