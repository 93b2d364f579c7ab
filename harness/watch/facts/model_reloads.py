"""Model reloads: what a model says that was saved, loaded again in another process, beside what it said then."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness import launch
from harness.torch_objects import in_half_precision, is_dense
from harness.watch.events import End, Fact, Forward, ModelSaved
from harness.watch.facts.reloads import Reloads
from harness.watch.facts.saved_states import SavedStates, StateSaved
from harness.watch.facts.twins import OF_THE_LOSS, Twin, mapped, probing
from harness.watch.recogniser import Recogniser
from harness.watch.reload import Order, Reloaded

ASKED_ROWS = 2
"""Rows that the model is asked about."""

Inputs = tuple[list[torch.Tensor], dict[str, torch.Tensor]]
"""What a model is given by position, and by name."""


class ModelReloaded(Fact):
    """What was saved after updates was loaded again in a new process. ``where`` is the save."""

    needs = "model that save_pretrained saved after its updates"
    path: str
    """Path as it is seen from here."""
    update: int = 1
    """The updates that had been made at the save."""
    misfit: str | None = None
    """Why it cannot be loaded, where its own parts do not fit one another."""
    apart: float = 0.0
    """The largest difference of a logit from what the model said when it was saved, as a share of the largest."""
    coarse: bool = False
    """Whether either of them was in half precision, or computed in it."""
    missing: Sequence[str] = ()
    """What was not in it, and so left as it was made."""
    unexpected: Sequence[str] = ()
    """What was in it and not used."""
    overwritten_base: str | None = None
    """The adapter's base, where something was saved into it after the adapter."""


@dataclass(frozen=True)
class ModelKept:
    """What a model said when it was saved."""

    logits: torch.Tensor
    where: str | None
    update: int
    coarse: bool
    """Whether it was in half precision, which another version may load in full precision, or computed in it."""


class ModelReloads(Recogniser):
    makes = (ModelReloaded,)

    def begin(self) -> None:
        self._reloads, self._states = self.fact(Reloads), self.fact(SavedStates)
        self._asked: WeakKeyDictionary[nn.Module, Inputs] = WeakKeyDictionary()
        """Two rows of what each model that was called was given."""
        self._latest: Inputs | None = None
        self._saved: dict[str, ModelKept] = {}
        """Path to what was saved there, in the order of the latest saves."""

    def on_forward(self, event: Forward) -> None:
        reload = self.monitor.options.reload
        if not reload.wanted or event.model in self._asked:
            return
        if ("input_ids" in event.kwargs and not event.args) or reload.loader is not None:
            has_decoder = getattr(getattr(event.model, "config", None), "is_encoder_decoder", False)
            inputs = _first_rows(event, () if has_decoder else OF_THE_LOSS)
            if inputs is not None:
                self._asked[event.model] = self._latest = inputs

    def on_model_saved(self, event: ModelSaved) -> None:
        model, path = event.model, os.path.abspath(event.folder)
        inner = model.get_base_model() if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else model
        reload = self.monitor.options.reload
        if reload.loader is not None:
            self._keep(model, path, Order(True, loader=reload.loader, found_in=reload.found_in), event.where)
        elif _is_of_transformers(type(inner)):
            labels = getattr(inner.config, "num_labels", None) if "Classification" in type(inner).__name__ else None
            self._keep(model, path, Order(True, type(inner).__name__, labels), event.where)

    def on_saved(self, fact: StateSaved) -> None:
        """What torch.save writes is loaded again where the user has said how."""
        reload = self.monitor.options.reload
        if reload.loader is None or fact.path is None:
            return
        if (model := self._states.model_of(fact.saved)) is not None:
            self._keep(model, fact.path, Order(True, loader=reload.loader, found_in=reload.found_in), fact.where)

    def _keep(self, model: nn.Module, path: str, order: Order, where: str | None) -> None:
        inputs = self._asked.get(model, self._latest)
        if not self.monitor.stepped or inputs is None or not launch.is_main_process():
            return
        with probing(self.monitor, f"whether what is saved in {os.path.relpath(path)} gives the same logits"):
            twin, device = Twin(model), next(model.parameters()).device
            args, kwargs = (mapped(given, lambda each: each.to(device)) for given in inputs)
            logits, again = (twin.logits(args, kwargs) for _ in range(2))
            if logits is not None and again is not None and torch.equal(logits, again):
                self._saved.pop(path, None)
                coarse = in_half_precision(model) or twin.computes_in_half_precision(args, kwargs)
                kept = ModelKept(logits.float().cpu(), where, self.monitor.updates_made, coarse)
                self._saved[path] = kept
                self._reloads.keep_model(path, order, *inputs)

    def on_end(self, event: End) -> None:
        for path, kept in self._saved.items():
            if found := self._reloads.told(path):
                self._compare(path, kept, found)

    def _compare(self, path: str, kept: ModelKept, found: Reloaded) -> None:
        shown = os.path.relpath(path)
        if found.misfit:
            self.tell(ModelReloaded(path=shown, update=kept.update, misfit=found.error, where=kept.where))
            return
        if found.resized is not None:
            self.monitor.note(
                f"the adapter in {shown} fits its base only after base.resize_token_embeddings({found.resized}), as "
                "PEFT's AutoPeftModel does by the tokenizer beside it; PeftModel.from_pretrained alone does not"
            )
        if found.error is not None or found.logits is None:
            self.monitor.note(f"what was saved in {shown} was not loaded again, so it is not judged: {found.error}")
            return
        scale = float(kept.logits.abs().max())
        apart = float((found.logits - kept.logits).abs().max()) if found.logits.shape == kept.logits.shape else scale
        self.tell(
            ModelReloaded(
                path=shown,
                update=kept.update,
                apart=0.0 if apart <= 1e-6 or not scale else apart / scale,
                coarse=found.coarse or kept.coarse,
                missing=found.missing,
                unexpected=found.unexpected,
                overwritten_base=self._overwritten_base(path),
                where=kept.where,
            )
        )

    def _overwritten_base(self, path: str) -> str | None:
        about = os.path.join(path, "adapter_config.json")
        if not os.path.exists(about):
            return None
        with open(about, encoding="utf-8") as file:
            base = os.path.abspath(str(json.load(file).get("base_model_name_or_path")))
        return os.path.relpath(base) if base != path and base in self._saved else None


def _first_rows(event: Forward, without: Collection[str]) -> Inputs | None:
    """First rows of what the model was given by position and by name; None if it cannot be told apart by rows."""
    if not all(is_dense(each) and each.dim() for each in event.args):
        return None
    named = {name: each for name, each in event.kwargs.items() if is_dense(each) and each.dim() and name not in without}
    given = [*event.args, *named.values()]
    rows = len(named["input_ids"] if "input_ids" in named else given[0]) if given else 0
    args = [each.detach()[:ASKED_ROWS].cpu().clone() for each in event.args]
    return args, {name: each.detach()[:ASKED_ROWS].cpu().clone() for name, each in named.items() if len(each) == rows}


def _is_of_transformers(kind: type) -> bool:
    """Whether the library has the class itself, and not the script one of its name."""
    return kind.__module__.startswith("transformers.") and hasattr(sys.modules.get("transformers"), kind.__name__)
