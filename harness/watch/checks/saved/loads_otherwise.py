from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness import launch
from harness.torch_objects import in_half_precision, is_dense
from harness.watch.check import Check
from harness.watch.events import End, Forward, ModelSaved, Save
from harness.watch.facts.parameters import names
from harness.watch.facts.reloads import Reloads
from harness.watch.facts.saved_states import SavedStates
from harness.watch.facts.twins import OF_THE_LOSS, Twin, asking, mapped
from harness.watch.monitor import Monitor
from harness.watch.reload import Order, Reloaded

ROWS = 2
"""Rows that the model is asked about."""

PRECISE, COARSE = 1e-3, 5e-2
"""Largest difference of logits, as a share of the largest, that loading may make: other kernels in float32, and
rounding to half precision. Guesses."""

Inputs = tuple[list[torch.Tensor], dict[str, torch.Tensor]]
"""What a model is given by position, and by name."""


@dataclass(frozen=True)
class Kept:
    """What a model said when it was saved."""

    logits: torch.Tensor
    where: str | None
    update: int
    coarse: bool
    """Whether it was in half precision, which another version may load in full precision."""


class LoadsOtherwise(Check):
    """A saved model gives other predictions when it is loaded again.

    ## Why is this a bug?
    The training was correct, but what is on disk is something else: the head or new embeddings were not saved with an
    adapter, an adapter was left out of the exported model, a wrapper gave the tensors other names. Libraries load what
    matches and say little about the rest, which stays random or as it is in the base.

    ## What to do
    Load the folder in a new process, as whoever uses it will, and compare the predictions. With an adapter, name what
    is trained besides in `modules_to_save`, set `task_type`, and save with the PeftModel, or merge it first
    (`merge_and_unload`). Save the unwrapped model.

    ## When it is right
    Models that their user is meant to complete: a base without its head, or parts of a pipeline. A folder that
    transformers and PEFT cannot load by themselves (a base that is in no folder) is not judged, and a note says so.
    Neither is a model that gives different output each time. A class of your own, or what `torch.save` has written, is
    judged if you say how to load it: `reload = "mine:load"` under `[tool.harness]`, a function that takes the path and
    returns the model. `--no-reload` loads nothing.

    ## References
    - https://github.com/huggingface/peft/issues/577
    - https://huggingface.co/docs/peft/developer_guides/checkpoint
    """

    status = "new"
    needs = "model that save_pretrained saved after its updates"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.reloads, self.states = monitor.fact(Reloads), monitor.fact(SavedStates)
        self.asked: WeakKeyDictionary[nn.Module, Inputs] = WeakKeyDictionary()
        """Of each model that was called, two rows of what it was given."""
        self.latest: Inputs | None = None
        self.saved: dict[str, Kept] = {}
        """By the path, in the order of the latest saves."""

    def on_forward(self, event: Forward) -> None:
        reload = self.monitor.options.reload
        if not reload.wanted or event.model in self.asked:
            return
        if ("input_ids" in event.kwargs and not event.args) or reload.loader is not None:
            has_decoder = getattr(getattr(event.model, "config", None), "is_encoder_decoder", False)
            inputs = _first_rows(event, () if has_decoder else OF_THE_LOSS)
            if inputs is not None:
                self.asked[event.model] = self.latest = inputs

    def on_model_saved(self, event: ModelSaved) -> None:
        model, path = event.model, os.path.abspath(event.folder)
        inner = model.get_base_model() if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else model
        reload = self.monitor.options.reload
        if reload.loader is not None:
            self._keep(model, path, Order(True, loader=reload.loader, found_in=reload.found_in), event.where)
        elif _is_of_transformers(type(inner)):
            labels = getattr(inner.config, "num_labels", None) if "Classification" in type(inner).__name__ else None
            self._keep(model, path, Order(True, type(inner).__name__, labels), event.where)

    def on_save(self, event: Save) -> None:
        """What torch.save writes is loaded again where the user has said how."""
        reload = self.monitor.options.reload
        if reload.loader is None or event.path is None:
            return
        for saved in self.states.latest:
            if (model := self.states.model_of(saved)) is not None:
                self._keep(model, event.path, Order(True, loader=reload.loader, found_in=reload.found_in), event.where)

    def _keep(self, model: nn.Module, path: str, order: Order, where: str | None) -> None:
        inputs = self.asked.get(model, self.latest)
        if not self.monitor.stepped or inputs is None or not launch.is_main_process():
            return
        with asking(self.monitor, f"whether what is saved in {os.path.relpath(path)} gives the same logits"):
            twin, device = Twin(model), next(model.parameters()).device
            args, kwargs = (mapped(given, lambda each: each.to(device)) for given in inputs)
            logits, again = (twin.logits(args, kwargs) for _ in range(2))
            if logits is not None and again is not None and torch.equal(logits, again):
                self.saved.pop(path, None)
                kept = Kept(logits.float().cpu(), where, self.monitor.updates_made, in_half_precision(model))
                self.saved[path] = kept
                self.reloads.keep_model(path, order, *inputs)

    def on_end(self, event: End) -> None:
        for path, kept in self.saved.items():
            if found := self.reloads.told(path):
                self._compare(path, kept, found)

    def _compare(self, path: str, kept: Kept, found: Reloaded) -> None:
        shown = os.path.relpath(path)
        if found.misfit:
            self.found(
                expected="a model that can be loaded again",
                observed=f"{shown} cannot be loaded in a new process: {found.error}",
                where=kept.where,
                update=kept.update,
                hint="What is loaded has the shapes of its config, an adapter those of its base on disk: save a base "
                "whose vocabulary was resized as well, and name it as the adapter's.",
            )
            return
        if found.resized is not None:
            self.monitor.note(
                f"the adapter in {shown} fits its base only after base.resize_token_embeddings({found.resized}), as "
                "PEFT's AutoPeftModel does by the tokenizer beside it; PeftModel.from_pretrained alone does not"
            )
        if found.error is not None or found.logits is None:
            self.monitor.note(f"what was saved in {shown} was not loaded again, so it is not judged: {found.error}")
            return
        self.looked = True
        scale = float(kept.logits.abs().max())
        apart = float((found.logits - kept.logits).abs().max()) if found.logits.shape == kept.logits.shape else scale
        if apart <= (COARSE if found.coarse or kept.coarse else PRECISE) * scale + 1e-6:
            return
        lacks = f"; not in it, and so left as they were made: {names(found.missing)}" if found.missing else ""
        more = f"; in it and not used: {names(found.unexpected)}" if found.unexpected else ""
        self.found(
            expected="the logits that the model had when it was saved",
            observed=f"loaded from {shown} in a new process, they are up to {apart / scale:.2g} of the largest apart"
            f"{lacks}{more}",
            where=kept.where,
            update=kept.update,
            hint=self._applied_twice(path),
        )

    def _applied_twice(self, path: str) -> str | None:
        """What to do where an adapter's base is a folder into which something was saved after it."""
        about = os.path.join(path, "adapter_config.json")
        if not os.path.exists(about):
            return None
        with open(about, encoding="utf-8") as file:
            base = os.path.abspath(str(json.load(file).get("base_model_name_or_path")))
        if base == path or base not in self.saved:
            return None
        return (
            f"The adapter's base, {os.path.relpath(base)}, was overwritten: if that is a model into which the adapter "
            "was merged, it is applied twice. Save the merged model to a folder of its own."
        )


def _first_rows(event: Forward, without: Collection[str]) -> Inputs | None:
    """Of what the model was given by position and by name; None if it cannot be told apart by rows."""
    if not all(is_dense(each) and each.dim() for each in event.args):
        return None
    named = {name: each for name, each in event.kwargs.items() if is_dense(each) and each.dim() and name not in without}
    given = [*event.args, *named.values()]
    rows = len(named["input_ids"] if "input_ids" in named else given[0]) if given else 0
    args = [each.detach()[:ROWS].cpu().clone() for each in event.args]
    return args, {name: each.detach()[:ROWS].cpu().clone() for name, each in named.items() if len(each) == rows}


def _is_of_transformers(kind: type) -> bool:
    """Whether the library has the class itself, and not the script one of its name."""
    return kind.__module__.startswith("transformers.") and hasattr(sys.modules.get("transformers"), kind.__name__)
