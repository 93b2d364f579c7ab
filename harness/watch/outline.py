"""The outline: what a run read, what it trained, and what it scored and saved, in three lines under every verdict; of
several processes a fourth: whether they made the updates that one would have made.

It looks at no tensor, so it costs a check nothing; the whole page is :mod:`harness.describe.page`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from harness.findings import count, few
from harness.watch.bounded import Distinct
from harness.watch.events import Backward, End, Forward, ModelSaved, PassEnds, Renamed, Save, Step
from harness.watch.facts.called_models import ModelNames, OptimizedModels, PendingForwards, is_one_row
from harness.watch.facts.datasets import length
from harness.watch.facts.rank_gradients import GradientsOfRanks
from harness.watch.facts.ranks import WeightsOfRanks
from harness.watch.monitor import ManualUpdate
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import KeptBatches, Use
from harness.watch.run.rows import of_rows

MOST_SHOWN = 4
"""Names, updates or loaders that a line shows."""


@dataclass(eq=False)
class _CalledModel:
    """A model, as it was when it was first called, and the rows that it was given."""

    name: str
    parameters: int
    frozen: int
    calls: int = 0
    """Calls that were differentiated."""
    trained: int = 0
    """Their rows."""
    asked_calls: int = 0
    """The others."""
    asked: int = 0
    """Their rows."""
    after: Distinct[int] = field(default_factory=Distinct)
    """After how many updates the others were."""
    whole: int | None = None
    """The number of the model that it is a part of, where that was called before."""


class Outline(Recogniser):
    """What models were given and by whom they were trained, and what was saved, by name and number."""

    def begin(self) -> None:
        self._sources: dict[tuple[str, int | None, str | None], int] = {}
        """Use, number of rows and place of a loader to the most rows of a pass, 0 if one was whole. A pass that trains
        and was shortened stands for a whole one, as the plan of its loop does; one that scores does not."""
        self._models: dict[int, _CalledModel] = {}
        self._uses: dict[tuple[str, int | None, str | None], list[Use]] = {}
        """The same to what became of the batches after the first passes."""
        self._kept = self.monitor.fact(KeptBatches)
        self._part_of: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
        """Module to the first called model that contains it."""
        self._names = self.monitor.fact(ModelNames)
        self._optimized = self.monitor.fact(OptimizedModels)
        self._waiting = PendingForwards[tuple[_CalledModel, int, int]]()
        """Forwards that are not differentiated yet: the model, its rows, and the number of updates made."""
        self._steps: Counter[str] = Counter()
        self._saved: dict[bool, dict[str, int]] = {True: {}, False: {}}
        """Names that were saved, each with the number of updates made at its latest save; True for models of
        transformers or PEFT."""

        self._gradients: GradientsOfRanks | None = None
        self._weights: list[WeightsOfRanks] = []

    def on_gradients_of_ranks(self, event: GradientsOfRanks) -> None:
        self._gradients = event

    def on_weights_of_ranks(self, event: WeightsOfRanks) -> None:
        self._weights.append(event)

    def on_pass_ends(self, event: PassEnds) -> None:
        of = event.of
        role = "trains on" if of.trains else "scores" if of.forwards else "reads"
        key = role, length(of.dataset), of.where
        uses = self._uses.setdefault(key, [])
        if len(uses) < MOST_SHOWN:
            uses.append(self._kept.of(of))
        before = self._sources.get(key, 1)
        some = of.shortened and role == "scores" and of.rows > 0
        whole = not before or ((of.exhausted or of.shortened) and not some)
        self._sources[key] = 0 if whole else max(before, of.rows)

    def on_forward(self, event: Forward) -> None:
        key = self.monitor.number_of(event.model)
        seen = self._models.get(key) or self._models.setdefault(key, self._first(event.model))
        given = next(iter(of_rows(event).values()), None)
        rows = 0 if given is None else 1 if is_one_row(event, given) else len(given)
        if event.gradients:
            self._waiting[event.number] = seen, rows, event.at.updates_made
        else:
            self._asked(seen, rows, event.at.updates_made)

    def _first(self, model: nn.Module) -> _CalledModel:
        sizes = [(each.numel(), each.requires_grad) for each in model.parameters()]
        frozen = sum(size for size, trainable in sizes if not trainable)
        number = self.monitor.number_of(model)
        for each in model.modules():
            self._part_of.setdefault(each, number)
        whole = self._part_of[model]
        found = _CalledModel(self._names.of(model), sum(size for size, _ in sizes), frozen)
        found.whole = None if whole == number else whole
        return found

    def _asked(self, seen: _CalledModel, rows: int, made: int) -> None:
        seen.asked_calls += 1
        seen.asked += rows
        seen.after.add(made)

    def on_backward(self, event: Backward) -> None:
        for seen, rows, _ in self._waiting.reached(event.reached):
            seen.calls += 1
            seen.trained += rows
        for each in self._waiting.given_up():
            self._asked(*each)

    def on_end(self, event: End) -> None:
        for each in self._waiting.given_up(0):
            self._asked(*each)

    def on_step(self, event: Step) -> None:
        own = isinstance(event.optimizer, ManualUpdate)
        self._steps["the script's own optimizer" if own else type(event.optimizer).__name__] += 1

    def on_save(self, event: Save) -> None:
        self._keep(event.path, event.at.updates_made, whole=False)

    def on_model_saved(self, event: ModelSaved) -> None:
        self._keep(event.folder, event.at.updates_made, whole=True)

    def on_renamed(self, event: Renamed) -> None:
        source, target = (os.path.basename(each) for each in (event.source, event.target))
        for names in self._saved.values():
            if source in names:
                names[target] = names.pop(source)

    def _keep(self, path: Any, made: int, *, whole: bool) -> None:
        if path is not None:
            self._saved[whole][os.path.basename(str(path).rstrip(os.sep))] = made

    def outline(self) -> dict[str, str]:
        """Lines of the outline by subject; empty where no model was called."""
        if not self._models:
            return {}
        trained = [each for number, each in self._models.items() if each.calls and self._optimized.has(number)]
        asked = self._put_together([each for each in self._models.values() if each.after])
        lines = {"data": self._data(trained), "trained": self._trained(trained), "scored": self._scored(asked)}
        return lines | ({"ranks": self._ranks()} if self._weights or self._gradients else {})

    @property
    def has_evaluations(self) -> bool:
        """Whether a model was called without an update."""
        return any(each.after for each in self._models.values())

    def _put_together(self, asked: list[_CalledModel]) -> list[_CalledModel]:
        """Parts of one model that a method of it calls one by one, as that model."""
        parts: dict[int, list[_CalledModel]] = {}
        for model in asked:
            if model.whole in self._models:
                parts.setdefault(model.whole, []).append(model)
        for number, several in parts.items():
            if len(several) > 1 and self._models[number] not in asked:
                largest = max(several, key=lambda each: each.asked)
                whole = replace(largest, name=self._models[number].name, whole=None)
                asked = [whole if each is several[0] else each for each in asked if each not in several[1:]]
        return asked

    def _ranks(self) -> str:
        weights, found = self._weights, self._gradients
        parts = []
        if weights:
            same = sum(each.same for each in weights)
            parts.append(
                f"the same weights after {same} of {count(len(weights), 'update')} of {weights[0].ranks} processes"
            )
        if found is None:
            return few([*parts, "their gradients were not compared"], MOST_SHOWN)
        own = "not a multiple of" if found.reduced is None else f"{found.reduced:.4g} times"
        one = f"{found.off:.1%} off" if found.whole is None else f"{found.whole:.4g} times, {found.off:.1e} off"
        if found.whole is None and not found.off:
            one = "not known, of several losses or weighted ones"
        passes = count(found.passes, "backward pass")
        parts.append(
            f"their gradient in {count(found.updates, 'update')} of {passes}: {own} the mean of the ranks' own"
        )
        return "; ".join([*parts, f"beside that of one process: {one}"])

    def _data(self, trained: list[_CalledModel]) -> str:
        parts = [
            f"{self._role(role, rows, where)} {f'{left:,} of ' if left and rows else ''}"
            f"{'rows of unknown number' if rows is None else count(rows, 'row')}"
            + (f" ({os.path.basename(where)})" if where else "")
            for (role, rows, where), left in self._sources.items()
        ]
        rows, calls = sum(each.trained for each in trained), sum(each.calls for each in trained)
        given = count(rows, "row") if rows else f"what {count(calls, 'call')} of a model was given"
        return few(parts, MOST_SHOWN) if parts else f"no DataLoader was read; {given} went into updates"

    def _role(self, role: str, rows: int | None, where: str | None) -> str:
        """What a loader was read for; one whose batches were kept in a list may have been trained on afterwards."""
        uses = self._uses[role, rows, where] if role == "reads" else []
        trained, scored = (any(getattr(use, name) for use in uses) for name in ("trained", "evaluated"))
        return "trains on" if trained else "scores" if scored else role

    def _trained(self, trained: list[_CalledModel]) -> str:
        models = [
            f"{each.name}: {count(each.parameters, 'parameter')}"
            + (f" ({each.frozen:,} frozen)" if each.frozen else "")
            for each in trained
        ]
        steps = [f"{count(number, 'step')} of {name}" for name, number in self._steps.items()]
        by = few(steps, MOST_SHOWN) if steps else "no step of an optimizer of torch"
        return f"{few(models, MOST_SHOWN) or 'no model that was called'}; {by}" if models or steps else "nothing"

    def _scored(self, asked: list[_CalledModel]) -> str:
        given = [count(each.asked, "row") if each.asked else count(each.asked_calls, "call") for each in asked]
        after = [each.after.few(each.after.first, MOST_SHOWN) for each in asked]
        scored = [
            f"{model.name}: {what}, after update {when}" for model, what, when in zip(asked, given, after, strict=True)
        ]
        saved = [f"{name} after update {made}" for names in self._saved.values() for name, made in names.items()]
        return f"{few(scored, MOST_SHOWN) or 'nothing'}; saved: {few(saved, MOST_SHOWN) or 'nothing'}"
