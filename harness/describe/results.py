"""Results: what was scored, what was saved, and what random numbers were drawn from."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from harness.describe.description import Line
from harness.describe.lines import BITS, FIRST, MOST_SHOWN, Section, line, listed, number
from harness.digests import digest, joined
from harness.findings import count
from harness.torch_objects import is_dense, is_distributed
from harness.watch.bounded import Distinct, First
from harness.watch.events import (
    Forward,
    Load,
    LossCall,
    MetricCall,
    ModelSaved,
    Pairing,
    RankingCall,
    Renamed,
    Save,
    Scored,
    Seeded,
    Thresholded,
    TokenizerSaved,
)
from harness.watch.facts.called_models import ModelNames, Names
from harness.watch.facts.datasets import length
from harness.watch.facts.model_reloads import ModelReloaded
from harness.watch.facts.reported_numbers import NumberReported
from harness.watch.facts.saved_models import EvaluatedSaved
from harness.watch.facts.saved_states import StateSaved

MOST_CLASSES = 20
"""Classes of predictions that are counted one by one."""

BY_HAND = {
    "compared": "where predictions are equal",
    "subtracted": "a difference",
    "threshold": "what lies above",
    "every_pair": "each number with each of the other",
}
"""What a script computes of what a model says, in words; else it is a loss function."""

MOST_REPORTED = 12
"""Numbers that a script reports that are said."""

MOST_ROUNDS = 1000
"""Evaluations whose scores are kept."""

LOGIT_RTOL = 1e-3
"""Largest difference of a logit, as a share of the largest, up to which a model answers alike."""

TEMPORARY = re.compile(r"tmp[a-z0-9_]{8}.*")
"""What the module tempfile calls a file or folder: another name each time."""


@dataclass(eq=False)
class _Metric:
    """A metric that is computed in one line."""

    name: str
    where: str | None
    times: int = 0
    rows: tuple[int, int, int] | None = None
    """The fewest and the most of a call, and those of the latest."""
    values: dict[str, float] = field(default_factory=dict)
    """Values of the latest call."""
    series: First[dict[str, float]] = field(default_factory=First)
    """Values of the first calls."""
    after: Distinct[int] = field(default_factory=Distinct)
    options: dict[str, Any] = field(default_factory=dict)
    predicted: dict[str, int] = field(default_factory=dict)
    """Number of predictions of each class in the latest call."""
    references: dict[str, int] = field(default_factory=dict)

    def count(self, rows: int, made: int) -> None:
        self.times += 1
        fewest, most, _ = self.rows or (rows, rows, rows)
        self.rows = min(fewest, rows), max(most, rows), rows
        self.after.add(made)


@dataclass(eq=False)
class _ByHand:
    """What a script computes itself of what a model says."""

    where: str | None
    shapes: Counter[str] = field(default_factory=Counter)
    """Shapes that were compared or subtracted."""
    sums: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Number of updates made to the sum of what came out, and of how many numbers."""

    def count(self, made: int, total: float, numbers: int) -> None:
        if made in self.sums or len(self.sums) < MOST_ROUNDS:
            before = self.sums.get(made, (0.0, 0))
            self.sums[made] = before[0] + total, before[1] + numbers


class Metrics(Section):
    """The metrics of libraries, with what they came to."""

    def begin(self) -> None:
        self._metrics: dict[tuple[str, str | None], _Metric] = {}
        self._reported: list[NumberReported] = []
        self._by_hand: dict[tuple[str, int | None], _ByHand] = {}
        """Computations by what was computed, and by the number of rows of the dataset whose batch was scored."""

    def on_metric_call(self, event: MetricCall) -> None:
        if event.whole:
            seen = self._metrics.setdefault((event.metric, event.where), _Metric(event.metric, event.where))
            seen.count(len(event.references), event.at.updates_made)
            seen.values = _numbers(event.metric, event.value)
            seen.series.append(seen.values)
            seen.options = {
                name: value for name, value in event.options.items() if isinstance(value, (str, int, float))
            }
            seen.predicted, seen.references = _counts(event.predictions), _counts(event.references)

    def on_number_reported(self, fact: NumberReported) -> None:
        self._reported.append(fact)

    def on_scored(self, event: Scored) -> None:
        """What a script scores itself, of what a model says without a graph."""
        if event.agrees is not None:
            seen = self._computed("compared", event.forward, event.forward.where)
            seen.shapes[_shape(event.agrees)] += 1
            seen.count(event.at.updates_made, float(event.agrees.sum()), event.agrees.numel())
        elif event.parts is not None:
            seen = self._computed("subtracted", event.forward, event.forward.where)
            seen.shapes[" and ".join(map(_shape, event.parts))] += 1
        elif event.loss is not None:
            seen = self._computed(event.loss.function, event.forward, event.loss.where)
            seen.shapes[_shape(event.loss.input)] += 1
            seen.count(event.at.updates_made, *_of_targets(event.loss))

    def _computed(self, what: str, of: Forward, where: str | None) -> _ByHand:
        rows = None if of.batch is None else length(of.batch.of.dataset)
        return self._by_hand.setdefault((what, rows), _ByHand(where))

    def on_thresholded(self, event: Thresholded) -> None:
        seen = self._computed("threshold", event.forward, event.where)
        seen.shapes[number(event.threshold)] += 1

    def on_pairing(self, event: Pairing) -> None:
        if event.column is None:
            return  # libraries compare all places with each other
        seen = self._by_hand.setdefault(("every_pair", None), _ByHand(event.where))
        seen.shapes[f"{_shape(event.one)} {event.sign} {_shape(event.other)}"] += 1

    def on_ranking_call(self, event: RankingCall) -> None:
        seen = self._metrics.setdefault((event.metric, event.where), _Metric(event.metric, event.where))
        seen.count(len(event.references), event.at.updates_made)
        different = len(set(map(str, event.scores)))
        seen.options = {"different_scores": different if different <= 2 else "many"}

    def lines(self) -> Iterator[Line]:
        names = Names()
        for key, seen in self._metrics.items():
            facts: dict[str, Any] = {"times": seen.times, "after": seen.after.ends()}
            text = f"{seen.name}, after update {seen.after.few(seen.after.first, MOST_SHOWN)}"
            facts |= {"options": seen.options, "references": seen.references}
            if seen.rows is not None and seen.rows[1]:
                facts["rows"] = [*seen.rows[:2]]
                text += f", of {count(seen.rows[2], 'row')}"
            if seen.values:
                named = [(name if name != seen.name else "", value) for name, value in seen.values.items()]
                text += f": {listed(f'{name} {number(value)}'.strip() for name, value in named)}"
                text += " at the end" if len(seen.series) > 1 else ""
            yield line("metric", text, facts, seen.where, of=names.of(key, seen.name))
        for (name, rows), by_hand in self._by_hand.items():
            facts = {"of": dict(by_hand.shapes.most_common(MOST_CLASSES))}
            text = f"computed by the script: {BY_HAND.get(name, name)} of {listed(by_hand.shapes)}"
            if by_hand.sums:
                total, numbers = by_hand.sums[max(by_hand.sums)]
                text += (
                    f"; {number(total / max(1, numbers))} on average over {numbers:,}, after update {max(by_hand.sums)}"
                )
            yield line("metric", text, facts, by_hand.where, of=names.of(("by hand", name, rows), f"by_hand.{name}"))

        for fact in self._reported[:MOST_REPORTED]:
            name = names.of((fact.name, fact.where), f"reported.{'_'.join(fact.name.split())}")
            by = "it could not be reproduced" if fact.by is None else f"it is {fact.by}"
            text = f"reported: {fact.name} {number(fact.number)}; {by}"
            facts = {f"by{BITS}": "unknown" if fact.by is None else fact.by.key, "times": fact.rounds}
            yield line("metric", text, facts, fact.where, of=name)

    def numbers(self) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for seen in self._metrics.values():
            for name in seen.values:
                found[f"metric.{seen.name}.{name}"] = [each[name] for each in seen.series if name in each]
            if seen.predicted:
                found[f"metric.{seen.name}.predicted"] = list(map(float, seen.predicted.values()))
        names = Names()
        for key, by_hand in self._by_hand.items():
            name = names.of(key, f"metric.by_hand.{key[0]}")
            if by_hand.sums:
                found[name] = [total / max(1, of) for total, of in by_hand.sums.values()][-FIRST:]
        return found


def _of_targets(call: LossCall) -> tuple[float, int]:
    """What a loss adds up to over its targets, and how many there are: of a mean as of a sum."""
    targets = int(call.targets)
    return float(call.value.detach().double().sum()) * (targets if call.is_mean else 1), targets


def _shape(tensor: torch.Tensor) -> str:
    """All dimensions but for the rows, and the type."""
    rows = "rows" if tensor.dim() else "one number"
    return " x ".join([rows, *map(str, tensor.shape[1:])]) + f" {str(tensor.dtype).removeprefix('torch.')}"


def _counts(values: Sequence[Any]) -> dict[str, int]:
    """How often each class is there, of few; nothing of anything else."""
    counts = Counter(str(int(each)) for each in values if isinstance(each, (bool, int)))
    return dict(sorted(counts.items())) if len(counts) <= MOST_CLASSES else {}


def _numbers(metric: str, value: Any) -> dict[str, float]:
    found = {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {metric: value}
    return {name: float(each) for name, each in found.items() if isinstance(each, (int, float)) or _is_number(each)}


def _is_number(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0


@dataclass(eq=False)
class _Saves:
    """What one line saved."""

    where: str | None
    what: dict[str, Distinct[str]] = field(default_factory=dict)
    """Kind of what was saved to the paths of its files and folders, as they are called by now."""
    times: int = 0
    after: Distinct[int] = field(default_factory=Distinct)
    whose: dict[str, None] = field(default_factory=dict)
    """The models whose weights they are."""
    current: bool | None = None
    """Whether the latest has the weights that its model had then; None where that is not known."""
    untouched: bool = False
    """Whether the latest has the weights that the training began with."""
    told: int = -1
    """Updates made when that was last told."""
    again: str | None = None
    """What loading it again came to."""


class Saves(Section):
    """What was saved, when, and whether it is what was trained."""

    def begin(self) -> None:
        self._saves: dict[str | None, _Saves] = {}
        self._names = self.monitor.fact(ModelNames)
        self._other_than_evaluated: str | None = None

    def on_save(self, event: Save) -> None:
        seen = self._keep(_what(event.what), event.where, event.path, event.at.updates_made)
        seen.whose |= dict.fromkeys(self._owners(event.what))

    def _owners(self, saved: Any) -> Iterator[str]:
        """The models whose weights these are: by the largest matrix of each."""
        states = [saved, *(saved.values() if isinstance(saved, Mapping) else ())]
        tensors = [t for each in states if isinstance(each, Mapping) for t in each.values() if is_dense(t)]
        for model in list(self.monitor.models):
            matrices = [each for each in model.parameters() if each.dim() > 1 and not is_distributed(each)]
            largest = max(matrices, key=torch.Tensor.numel, default=None)
            if largest is not None:
                alike = (each for each in tensors if each.shape == largest.shape and each.dtype == largest.dtype)
                if any(torch.equal(each.to(largest.device), largest) for each in alike):
                    yield self._names.of(model)

    def on_model_saved(self, event: ModelSaved) -> None:
        name = type(event.model).__name__
        seen = self._keep(f"{name} by save_pretrained", event.where, event.folder, event.at.updates_made)
        seen.what.pop(f"{name}, the module itself", None)  # it is the same save, by the function below

    def on_tokenizer_saved(self, event: TokenizerSaved) -> None:
        self._keep("the tokenizer", event.where, event.folder, event.at.updates_made)

    def _keep(self, what: str, where: str | None, path: str | None, made: int) -> _Saves:
        seen = self._saves.setdefault(where, _Saves(where))
        names = seen.what.setdefault(what, Distinct())
        if path is not None:
            names.add(os.path.abspath(str(path)))
        seen.times += made not in seen.after.latest()
        seen.after.add(made)
        return seen

    def on_renamed(self, event: Renamed) -> None:
        for seen in self._saves.values():
            for names in seen.what.values():
                names.rename(event.source, event.target)

    def on_state_saved(self, fact: StateSaved) -> None:
        if (seen := self._saves.get(fact.where)) is not None:
            # One save is told for each model that the state fits; it is of any of them.
            again = seen.told == fact.at.updates_made
            seen.current = fact.saved.current or (again and bool(seen.current))
            seen.untouched = fact.saved.untouched and (seen.untouched or not again)
            seen.told = fact.at.updates_made

    def on_evaluated_saved(self, fact: EvaluatedSaved) -> None:
        self._other_than_evaluated = fact.where if fact.other else None

    def on_model_reloaded(self, fact: ModelReloaded) -> None:
        if (seen := self._saves.get(fact.where)) is not None:
            fits = fact.misfit is None and not fact.missing and not fact.unexpected
            same = "gives the same answers" if fits and fact.apart < LOGIT_RTOL else "gives other answers"
            seen.again = fact.misfit or same

    def lines(self) -> Iterator[Line]:
        for place, seen in enumerate(self._saves.values(), start=1):
            what = [f"{each} to {_shown(paths)}" if paths else each for each, paths in seen.what.items()]
            clause = f"{'; '.join(what)}; after update {seen.after.few(seen.after.first, MOST_SHOWN)}"
            facts: dict[str, Any] = {"what": sorted(seen.what), "after": seen.after.ends(), "times": seen.times}
            if seen.whose:
                facts["weights_of"] = list(seen.whose)
                clause += f"; the weights of {listed(seen.whose)}"
            if seen.current is not None:
                clause += "; with the weights that the training began with" if seen.untouched else ""
                clause += "; not the weights that the model had then" if not (seen.current or seen.untouched) else ""
                facts |= {"current": seen.current, "untouched": seen.untouched}
            if seen.again is not None:
                clause += f"; the model, loaded again, {seen.again}"
                facts["again"] = seen.again
            yield line("saved", clause, facts, seen.where, of=str(place))
        if self._other_than_evaluated is not None:
            text = "no state that was saved has the weights that were evaluated last"
            yield line("saved", text, {"other_than_evaluated": True}, self._other_than_evaluated)
        if not self._saves:
            yield line("saved", "nothing", {"nothing": True})


def _shown(paths: Distinct[str]) -> str:
    names = (os.path.basename(each) for each in paths.first)
    shown = dict.fromkeys("a temporary folder" if TEMPORARY.fullmatch(each) else each for each in names)
    further = paths.number - len(paths.first)
    return listed([*shown, *[""] * further])


def _what(saved: Any) -> str:
    if isinstance(saved, nn.Module):
        return f"{type(saved).__name__}, the module itself"
    if isinstance(saved, Mapping):
        if not saved:
            return "a mapping without entries"
        if all(torch.is_tensor(each) for each in saved.values()):
            return f"a state of {count(len(saved), 'tensor')}"
        return f"a mapping of {listed(sorted(map(str, saved)), 6)}"
    if torch.is_tensor(saved):
        return "a tensor"
    return f"an object of {type(saved).__name__}" if not isinstance(saved, Optimizer) else "the optimizer"


class Loads(Section):
    """What states were loaded, into what, and when."""

    def begin(self) -> None:
        self._loads: dict[tuple[int | None, str, str | None], list[tuple[int, int, int, int]]] = {}
        """Loads by the number of the model, the class of what was loaded into, and the place."""
        self._names = self.monitor.fact(ModelNames)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, Optimizer) and not event.state.get("state"):
            return  # Accelerate takes an optimizer's settings to another device so
        into, model, missing = type(event.into).__name__, None, 0
        if isinstance(event.into, nn.Module):
            model = self.monitor.number_of(event.into)
            missing = len(event.into.state_dict().keys() - event.state.keys())
        told = (event.at.updates_made, len(event.state), missing, len(event.unexpected))
        self._loads.setdefault((model, into, event.where), []).append(told)

    def lines(self) -> Iterator[Line]:
        names = Names()
        for (model, kind, where), loads in self._loads.items():
            into = kind if model is None else self._names.of_number(model, kind)
            after = list(dict.fromkeys(each[0] for each in loads))
            _, entries, missing, unexpected = loads[-1]
            text = f"a state of {count(entries, 'entry')} was loaded into {into}, after update {listed(after)}"
            text += f"; {missing} of its own were not in it" if missing else ""
            text += f"; {unexpected} in it have no place" if unexpected else ""
            facts = {"times": len(loads), "after": [after[0], after[-1]], "entries": entries}
            facts |= {"missing": missing, "unexpected": unexpected}
            yield line("loaded", text, facts, where, of=names.of((into, where), into))


class Randomness(Section):
    """What was seeded, and what was drawn from."""

    def begin(self) -> None:
        self._seeds: dict[str, list[tuple[Any, str | None]]] = {}
        self._began = self._states()

    def _states(self) -> dict[str, str]:
        """States of the CPU's generators: to ask for a GPU's would begin to use it, and a script may fork before it
        does."""
        numpy = np.random.get_state(legacy=False)
        assert isinstance(numpy, dict)
        return {
            "torch": digest(torch.get_rng_state()),
            "NumPy": joined([numpy, numpy["state"]["key"].tolist()]),
            "Python": joined([random.getstate()]),
        }

    def on_seeded(self, event: Seeded) -> None:
        if event.where is not None:
            self._seeds.setdefault(event.library, []).append((event.seed, event.where))

    def lines(self) -> Iterator[Line]:
        now, alike = self._states(), dict[tuple[str, str | None], list[str]]()
        for library, began in self._began.items():
            seeds = self._seeds.get(library, [])
            values = list(dict.fromkeys(seed for seed, _ in seeds if isinstance(seed, (int, float, str))))
            drawn = now[library] != began
            facts = {"seeds": values[:FIRST], "times": len(seeds), "drawn": drawn or bool(seeds)}
            if seeds:
                text = f"seeded with {listed(values) or 'something else than a number'}"
                text += f", {len(seeds)} times" if len(seeds) > 1 else ""
            else:
                text = "not seeded, but used" if drawn else "not seeded, not used"
            alike.setdefault((text, seeds[0][1] if seeds else None), []).append(library)
            yield line("randomness", "", facts, of=library)
        for (text, where), libraries in alike.items():
            *before, last = libraries
            yield line("randomness", f"{', '.join(before)}{' and ' * bool(before)}{last} {text}", {}, where)
