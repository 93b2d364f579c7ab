"""Updates: the optimizers, what they were given, their learning rates, and how each update came about."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.describe.description import Line
from harness.describe.lines import FIRST, SHAPES, Section, line, listed, number, patterns, shapes, spread
from harness.describe.models import names_of
from harness.findings import count
from harness.torch_objects import held_by, is_dense, share_groups
from harness.watch.events import Backward, Clip, SchedulerStep, SkippedStep, Step, StepBegins, ZeroGrad
from harness.watch.facts.called_models import Names
from harness.watch.facts.gradient_ledger import GradientsCleared, GradientsClipped, GradientsUsed
from harness.watch.monitor import ManualUpdate

NO_SETTINGS = ("params", "lr", "initial_lr", "foreach", "fused", "capturable", "differentiable", "param_names")
"""What is in a group and says nothing of what its updates come to, or is said otherwise."""

MOST_RATES = 1_000_000
"""Updates whose learning rates are kept, in eight bytes each."""

MOMENTS = 11
"""Moments of a training, evenly over it, whose learning rates a baseline keeps, as a share of the largest."""


UNCLIPPED = "gradient_norm_before_clipping"
"""The numbers that are the norms of gradients before they are clipped: of clipped ones baselines have both, since those
that were recorded earlier have the norms behind it alone."""


@dataclass(eq=False)
class _GroupSettings:
    tensors: int
    elements: int
    rate: float | None
    settings: dict[str, Any]
    names: list[str]


@dataclass(eq=False)
class _Optimizer:
    name: str
    made: str | None
    groups: list[_GroupSettings]
    shapes: str
    """Those of its tensors, in their order."""
    in_none: list[str]
    """Patterns of trainable tensors of the models that were called, which no optimizer has."""
    where: str | None
    rates: array[float] = field(default_factory=lambda: array("d"))
    """Learning rate in each update of the group that has the largest."""
    of_groups: dict[int, tuple[float, float, bool]] = field(default_factory=dict)
    """Group to its learning rates in the first and in the latest update, and whether it ever changed."""
    backwards: Counter[int] = field(default_factory=Counter)
    """How many backward passes an update used."""
    thrown: int = 0
    """Backward passes whose gradients were cleared, and that no update used."""
    thrown_moved: int = 0
    """Times that this happened when the weights had been moved since."""
    stale: int = 0
    """Updates whose gradients still had those of an earlier one."""
    empty: int = 0
    clipped: Counter[str] = field(default_factory=Counter)
    """How updates were clipped between their last backward pass and the step."""
    cleared: bool = False
    """Whether any call has cleared its gradients."""
    skipped: int = 0
    clips: set[int] = field(default_factory=set)
    """How often gradients were clipped for an update."""
    clipped_tensors: list[int] = field(default_factory=list)
    """The fewest and the most of its tensors that a clipping was given."""
    scales: Counter[str] = field(default_factory=Counter)
    """What became of a GradScaler's factor."""
    without_gradient: dict[int, str] = field(default_factory=dict)
    """The names of tensors that never had a gradient, by their ids."""
    norms: list[float] = field(default_factory=list)
    unclipped_norms: list[float] = field(default_factory=list)
    """Norms before clipping, where gradients were clipped."""
    steps: int = 0
    keeps_state: bool = False
    state_lost: int = 0
    """Steps that began without any state, though earlier ones had left some."""
    closures: int = 0
    """Backward passes within its steps, by the closures that they were given."""
    scheduler: str | None = None
    scheduled: int = 0
    """How often a scheduler was stepped."""
    scheduled_where: str | None = None


class Optimizers(Section):
    """The optimizers that made steps, group by group, and what their updates used."""

    def begin(self) -> None:
        self._optimizers: WeakKeyDictionary[Optimizer, _Optimizer] = WeakKeyDictionary()
        self._seen: list[_Optimizer] = []
        self._names = Names()
        self._clip: Clip | None = None
        self._unclipped: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        """Optimizer to the norm of its gradients before the first clipping since the latest backward pass."""
        self._clips = 0
        """Since the latest step."""
        self._used_first: GradientsUsed | None = None
        """Gradients used by an optimizer's first step, which is about to begin."""
        self._thrown: WeakKeyDictionary[Optimizer, tuple[int, int]] = WeakKeyDictionary()
        """The same of optimizers that have not stepped yet."""
        self._in_step = 0
        """Backward passes of a closure, within the step at hand."""
        self._clipped_scaled = False
        """Whether anything was clipped that still had a GradScaler's factor."""

    def on_clip(self, event: Clip) -> None:
        """It is told before it is done."""
        for optimizer in self.monitor.optimizers if self._clip is None else ():
            seen = self._optimizers.get(optimizer)
            if seen is None or len(seen.norms) < FIRST:
                self._unclipped[optimizer] = _norm(held_by(optimizer))
        self._clip = event
        self._clips += 1

    def on_backward(self, event: Backward) -> None:
        self._clip = None
        self._in_step += event.inside_step

    def on_step_begins(self, event: StepBegins) -> None:
        seen = self._optimizers.get(event.optimizer)
        if seen is None:
            seen = self._optimizers[event.optimizer] = self._first(event)
            self._seen.append(seen)
            seen.thrown, seen.thrown_moved = self._thrown.pop(event.optimizer, (0, 0))
            if self._used_first is not None and self._used_first.optimizer is event.optimizer:
                self.on_gradients_used(self._used_first)
            self._used_first = None
        groups = enumerate(event.optimizer.param_groups, start=1)
        by_group = {place: float(group["lr"]) for place, group in groups if group.get("lr") is not None}
        rates = list(by_group.values())
        for place, now in by_group.items():
            first, before, moved = seen.of_groups.get(place, (now, now, False))
            seen.of_groups[place] = first, now, moved or now != before
        if rates and len(seen.rates) < MOST_RATES:
            seen.rates.append(max(rates))
        seen.clips.add(self._clips)
        seen.state_lost += seen.steps > 0 and seen.keeps_state and not event.optimizer.state
        clip = self._clip
        if clip is None:
            seen.clipped["not clipped"] += 1
        else:
            limit = "" if clip.limit is None else f" to {number(clip.limit)}"
            seen.clipped[f"{'values' if clip.by_value else 'norm'} clipped{limit}"] += 1
            given = {id(each) for each in clip.parameters}
            among = sum(id(each) in given for each in held_by(event.optimizer))
            seen.clipped_tensors = [min([among, *seen.clipped_tensors]), max([among, *seen.clipped_tensors])]
        if seen.without_gradient and (seen.steps < FIRST or event.sampled):
            for parameter in held_by(event.optimizer):
                if id(parameter) in seen.without_gradient and parameter.grad is not None and bool(parameter.grad.any()):
                    del seen.without_gradient[id(parameter)]
        if len(seen.norms) < FIRST:
            seen.norms.append(_norm(held_by(event.optimizer)))
            seen.unclipped_norms.append(
                self._unclipped.get(event.optimizer, seen.norms[-1]) if clip else seen.norms[-1]
            )

    def on_gradients_used(self, fact: GradientsUsed) -> None:
        """It is told before the step begins."""
        seen = self._optimizers.get(fact.optimizer)
        if seen is None:
            self._used_first = fact
        else:
            seen.backwards[len(fact.fresh)] += 1
            seen.stale += bool(fact.stale)
            seen.scales[fact.scale] += 1
            seen.empty += fact.empty
            seen.cleared |= fact.cleared_at is not None

    def on_gradients_cleared(self, fact: GradientsCleared) -> None:
        if fact.lost and fact.optimizer in self._optimizers:
            self._optimizers[fact.optimizer].thrown += len(fact.lost)
            self._optimizers[fact.optimizer].thrown_moved += fact.moved
        elif fact.lost:
            thrown, moved = self._thrown.get(fact.optimizer, (0, 0))
            self._thrown[fact.optimizer] = thrown + len(fact.lost), moved + fact.moved

    def on_zero_grad(self, event: ZeroGrad) -> None:
        seen = self._optimizers.get(event.of) if isinstance(event.of, Optimizer) else None
        if seen is not None:
            seen.cleared = True

    def on_skipped_step(self, event: SkippedStep) -> None:
        seen = self._optimizers.get(event.optimizer)
        if seen is not None:
            seen.skipped += 1

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        for optimizer, seen in self._optimizers.items():
            if share_groups(getattr(event.scheduler, "optimizer", None), optimizer):
                seen.scheduler = type(event.scheduler).__name__
                seen.scheduled += 1
                seen.scheduled_where = event.where

    def on_gradients_clipped(self, fact: GradientsClipped) -> None:
        self._clipped_scaled |= fact.scaled

    def on_step(self, event: Step) -> None:
        self._clips = 0
        if event.optimizer in self._optimizers:
            self._optimizers[event.optimizer].steps += 1
            self._optimizers[event.optimizer].keeps_state |= bool(event.optimizer.state)
            self._optimizers[event.optimizer].closures += self._in_step
        self._in_step = 0

    def _first(self, event: StepBegins) -> _Optimizer:
        optimizer, models = event.optimizer, list(self.monitor.models)
        names = names_of(optimizer, models)
        everywhere = {id(p) for each in [*self.monitor.optimizers, optimizer] for p in held_by(each)}
        trained = [model for model in models if any(id(p) in everywhere for p in model.parameters())]
        free = [
            n for model in trained for n, p in model.named_parameters() if p.requires_grad and id(p) not in everywhere
        ]
        own = isinstance(optimizer, ManualUpdate)
        return _Optimizer(
            self._names.of(len(self._seen), "the script's own" if own else type(optimizer).__name__),
            event.made,
            [_group(group, names) for group in optimizer.param_groups],
            shapes(held_by(optimizer)),
            patterns(free),
            event.where,
            without_gradient={} if own else names,
        )

    def numbers(self) -> dict[str, list[float]]:
        """Clipping hides in the norms what it takes away, so that those before it are kept, too."""
        found = {f"gradient_norm.{seen.name}": seen.norms for seen in self._seen}
        clipped = [seen for seen in self._seen if seen.clipped.keys() - {"not clipped"}]
        return found | {f"{UNCLIPPED}.{seen.name}": seen.unclipped_norms for seen in clipped}

    def _groups(self, seen: _Optimizer) -> Iterator[Line]:
        groups = [
            {
                "tensors": each.tensors,
                "elements": each.elements,
                "names": each.names,
                "lr": each.rate,
                **{key: list(v) if isinstance(v, tuple) else v for key, v in each.settings.items()},
            }
            for each in seen.groups
        ]
        filled = [each for each in seen.groups if each.tensors]
        clause = f"{seen.name}: " if len(filled) < 2 else f"{seen.name}, {len(filled)} groups: "
        clause += "; ".join(_said(each) for each in filled)
        numbered = enumerate(groups, start=1)
        facts = {f"group_{place}.{key}": value for place, group in numbered for key, value in group.items()}
        yield line("optimizer", clause, facts, seen.made or seen.where, of=seen.name)
        text = f"trainable and in no optimizer: {listed(seen.in_none)}" if seen.in_none else ""
        facts = {"in_none": seen.in_none, SHAPES: seen.shapes}
        yield line("optimizer", text, facts, seen.made or seen.where, of=seen.name)

    def _updates(self, seen: _Optimizer) -> Line:
        facts: dict[str, Any] = {
            "steps": seen.steps,
            "backward_passes": {str(each): seen.backwards[each] for each in sorted(seen.backwards)},
            "closures": seen.closures,
            **({"cleared_unused": seen.thrown, "moved_before_cleared": seen.thrown_moved} if seen.thrown else {}),
            "stale": seen.stale,
            "empty": seen.empty,
            "without_gradient": patterns(seen.without_gradient.values()),
            "clipped": dict(seen.clipped),
            "clipped_tensors": seen.clipped_tensors,
            "clips": sorted(seen.clips),
            "clipped_scaled": self._clipped_scaled,
            "scale": sorted(seen.scales),
            "skipped": seen.skipped,
            "state_lost": seen.state_lost,
        }
        parts = [f"{count(seen.steps, 'update')} by {seen.name}{_passes(seen)}", *_cleared(seen), *_clipped(seen)]
        further = f"the gradients of {count(seen.thrown, 'further backward pass')}"
        moved = f" {count(seen.thrown_moved, 'time')}" if seen.thrown_moved != seen.thrown else ""
        thrown = f"moved the weights{moved} and were then cleared" if seen.thrown_moved else "cleared unused"
        unusual = {
            f"{further} {thrown}": seen.thrown,
            f"never a gradient other than 0: {listed(facts['without_gradient'])}": facts["without_gradient"],
            "clipped while they had a GradScaler's factor": self._clipped_scaled,
            "gradients still had a GradScaler's factor": "carried" in seen.scales,
            f"{seen.skipped} left out by the GradScaler": seen.skipped,
            f"{count(seen.state_lost, 'step')} lost the optimizer's state": seen.state_lost,
        }
        text = "; ".join([*parts, *(each for each, is_so in unusual.items() if is_so)])
        return line("update", text, facts, seen.where, of=seen.name)

    def lines(self) -> Iterator[Line]:
        for seen in self._seen:
            yield from self._groups(seen)
            yield self._updates(seen)
            if seen.rates:
                yield self._rates(seen)

    def _rates(self, seen: _Optimizer) -> Line:
        rates = seen.rates
        peak, first, last = max(rates), rates[0], rates[-1]
        facts: dict[str, Any] = {"first": first, "largest": peak, "last": last, "by": None}
        if peak > 0:
            places = [round((len(rates) - 1) * part / (MOMENTS - 1)) for part in range(MOMENTS)]
            facts["course"] = [float(f"{rates[place] / peak:.3g}") for place in places]
            facts["largest_at"] = rates.index(peak) + 1
        by = ""
        if seen.scheduler is not None:
            facts |= {"by": seen.scheduler, "times": seen.scheduled}
            by = f" by {seen.scheduler}, stepped {count(seen.scheduled, 'time')} in {count(seen.steps, 'update')}"
        elif first != last or peak not in (first, last):
            by = " set by the script itself"
        elif (idle := self._never_stepped(seen)) is not None:
            facts |= {"by": idle, "times": 0}
            by = f" by {idle}, which was never stepped"
        apart = _rates_apart(seen)
        if apart:
            facts["groups"] = {str(place): [first, last] for place, (first, last, _) in seen.of_groups.items()}
            text = f"the learning rates of {seen.name}: {apart},{by or ' set by the script itself'}"
        elif min(rates) == peak:
            text = f"the learning rate of {seen.name} stays {number(peak)}" + by.replace(" by", ", under")
        else:
            rises = f", up to {number(peak)} at update {rates.index(peak) + 1}" if peak not in (first, last) else ""
            text = f"the learning rate of {seen.name} goes from {number(first)}{rises} to {number(last)}{by}"
        return line("schedule", text, facts, seen.scheduled_where or seen.where, of=seen.name)

    def _never_stepped(self, seen: _Optimizer) -> str | None:
        """The class of a scheduler that was made for an optimizer, and is alive."""
        alive = [optimizer for optimizer, known in self._optimizers.items() if known is seen]
        made = self.monitor.find_schedulers() if alive else ()
        mine = (each for each in made if share_groups(getattr(each, "optimizer", None), alive[0]))
        return next((type(each).__name__ for each in mine), None)


def _rates_apart(seen: _Optimizer) -> str:
    """The learning rate of each group, where some move and others stay, or they go to other shares of their first."""
    courses = list(seen.of_groups.values())
    moving = [moved for _, _, moved in courses]
    shares = [last / first for first, last, _ in courses if first]  # a warmup may begin at 0
    alike = not shares or math.isclose(min(shares), max(shares), rel_tol=1e-6)
    if not any(moving) or (alike and all(moving)):
        return ""
    text = (
        f"group {place} {f'from {number(first)} to {number(last)}' if moved else f'stays {number(first)}'}"
        for place, (first, last, moved) in seen.of_groups.items()
    )
    return listed(text, most=6)


def _passes(seen: _Optimizer) -> str:
    if seen.closures:
        return f", which called their closures for {count(seen.closures, 'further backward pass')}"
    passes = sorted(seen.backwards)
    return f", each of {spread(passes)} backward pass{'es' * (passes != [1])}" if passes else ""


def _cleared(seen: _Optimizer) -> Iterator[str]:
    if seen.stale:
        yield f"{seen.stale} still had gradients of an earlier update in them"
    elif seen.cleared and seen.backwards:
        yield "gradients cleared between them"
    if seen.empty:
        yield f"{seen.empty} had no gradient"


def _clipped(seen: _Optimizer) -> Iterator[str]:
    held = sum(each.tensors for each in seen.groups)
    few = bool(seen.clipped_tensors) and seen.clipped_tensors[0] < held
    among = f", {spread(seen.clipped_tensors)} of its {count(held, 'tensor')}" if few else ""
    many = len(seen.clipped) > 1
    yield ", ".join(f"{what} in {times}" if many else what for what, times in seen.clipped.items()) + among
    if max(seen.clips, default=0) > 1:
        yield f"clipped {spread(sorted(seen.clips))} times for an update"


def _group(group: dict[str, Any], names: dict[int, str]) -> _GroupSettings:
    held = group["params"]
    settings = {
        name: value
        for name, value in group.items()
        if name not in NO_SETTINGS and isinstance(value, (bool, int, float, str, tuple))
    }
    rate = group.get("initial_lr", group.get("lr"))  # a schedule has begun by the first step
    named = patterns(names[id(each)] for each in held if id(each) in names)
    elements = sum(each.numel() for each in held)
    return _GroupSettings(len(held), elements, None if rate is None else float(rate), settings, named)


def _said(group: _GroupSettings) -> str:
    text = f"{count(group.tensors, 'tensor')} of {count(group.elements, 'number')}"
    if group.rate is not None:
        text += f", learning rate {number(group.rate)}"
    decay = group.settings.get("weight_decay")
    text += f", weight decay {number(decay)}" if decay else ", no weight decay"
    for name in ("betas", "momentum", "nesterov"):
        if value := group.settings.get(name):
            text += f", {name} {tuple(value) if isinstance(value, (list, tuple)) else value}"
    return text


def _norm(tensors: Sequence[torch.Tensor]) -> float:
    total = 0.0
    for gradient in (each.grad for each in tensors):
        if gradient is not None and is_dense(gradient) and not gradient.is_complex():
            total += float(gradient.detach().double().square().sum())
    return math.sqrt(total)
