"""Models: what is trained of them, in which mode they were called, and what became of their parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import torch
from torch import nn

from harness.describe.description import Line
from harness.describe.lines import MOST_SHOWN, NAMES, SHAPES, Section, in_order, line, listed, number, patterns, shapes
from harness.findings import count
from harness.torch_objects import checksum, held_by, is_distributed, real, share_parameters
from harness.watch.bounded import Distinct
from harness.watch.events import Backward, End, Forward, FromPretrained, Step, StepBegins
from harness.watch.facts.adapters import AdapterTargets, adapted_layers, adapters_of, tensors_of
from harness.watch.facts.called_models import ModelNames, OptimizedModels, PendingForwards
from harness.watch.facts.copies import CopyFollowed, CopyOver
from harness.watch.run.evaluations import mode_dependent

CLOSELY_WATCHED_UPDATES = 8
"""Updates after which a tensor that has not changed is looked at seldom."""

SELDOM = 50


@dataclass(eq=False)
class _Model:
    """A model, as it was when it was first called, and what it did."""

    name: str
    model: ref[nn.Module]
    where: str | None
    parameters: int
    trainable: int
    types: dict[str, int]
    devices: list[str]
    frozen: list[str]
    """Patterns of the names of tensors without gradients."""
    trained: list[str]
    """Patterns of the names of tensors with gradients."""
    known_by: dict[str, Any]
    """Shapes and names of its tensors, in their order."""
    sums: dict[str, int] = field(default_factory=dict)
    """Checksum of the bits of each trainable tensor that has not changed yet."""
    adapters: dict[str, dict[str, Any]] = field(default_factory=dict)
    """PEFT's, by name: what it was asked for."""
    shared_with: str | None = None
    """A model that was called before and has some of its parameters."""
    copy_of: str | None = None
    """A model whose weights it had when it was first called, as after a file that was loaded again."""
    frozen_sums: dict[str, int] = field(default_factory=dict)
    """Checksum of each frozen tensor that has not changed."""
    gone: bool = False
    """Whether it was let go before the end, when it was known last which of its tensors had not changed."""
    frozen_changed: list[str] = field(default_factory=list)
    after_step: dict[str, int] = field(default_factory=dict)
    """What the bits of its tensors add up to after the latest of the first steps."""
    changed_between: set[str] = field(default_factory=set)
    """Tensors that something else than an optimizer changed between steps."""
    asked_active: Counter[int] = field(default_factory=Counter)
    """Numbers of sensitive modules in train mode, as in ``active``, in the other calls."""
    modes: Counter[str] = field(default_factory=Counter)
    """Modes in which it was called in passes that were differentiated."""
    asked: Counter[str] = field(default_factory=Counter)
    """And otherwise."""
    asked_at: Distinct[int] = field(default_factory=Distinct)
    """After how many updates it was called without being differentiated."""
    asked_where: str | None = None
    autocast: str | None = None
    checkpoint: list[str] | None = None
    """Patterns of the tensors that were not in the checkpoint that it comes from; None where it comes from none."""
    sensitive: int = 0
    """Modules that behave otherwise in train mode."""
    active: Counter[int] = field(default_factory=Counter)
    """How many of them were in train mode in passes that were differentiated."""
    with_graph: int = 0
    without_graph: int = 0


class Models(Section):
    """The models that were called, which of their tensors were trained, and when they were called otherwise."""

    def begin(self) -> None:
        self._models: dict[int, _Model] = {}
        self._names = self.monitor.fact(ModelNames)
        self._optimized = self.monitor.fact(OptimizedModels)
        self._waiting = PendingForwards[tuple[_Model, str, int, str | None, int]]()
        """Forwards that are not differentiated yet: the model, its mode, how many modules were active, where, and after
        how many updates."""
        self._loaded: dict[int, Mapping[str, Any]] = {}
        """What the loading of a checkpoint said, by the id of its model."""
        self._absent: dict[str, list[str]] = {}
        """Adapter to its targets that no module of the model has as its name."""
        self._updates = 0
        self._followed: dict[str, CopyFollowed] = {}
        """Name that the script has for a copy to the latest of what is known of how it follows."""
        self._copies: dict[str, CopyOver] = {}

    def on_copy_followed(self, fact: CopyFollowed) -> None:
        self._followed[fact.shown] = fact

    def on_copy_over(self, fact: CopyOver) -> None:
        self._copies[fact.shown] = fact

    def on_from_pretrained(self, event: FromPretrained) -> None:
        self._loaded[id(event.model)] = event.info

    def on_adapter_targets(self, fact: AdapterTargets) -> None:
        if fact.option == "target_modules":
            self._absent[fact.adapter] = list(fact.absent)

    def on_forward(self, event: Forward) -> None:
        number = self.monitor.number_of(event.model)
        if number not in self._models:
            self._models[number] = self._first(event)
        seen = self._models[number]
        active = sum(module.training for module in mode_dependent(event.model))
        device = seen.devices[0] if seen.devices else "cpu"
        known = seen.autocast is not None or not torch.amp.is_autocast_available(device)
        if event.gradients and not known and torch.is_autocast_enabled(device):
            seen.autocast = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        mode = "train" if event.model.training else "eval"
        if event.gradients:
            self._waiting[event.number] = seen, mode, active, event.where, event.at.updates_made
        else:
            self._asked(seen, mode, active, event.where, event.at.updates_made, graph=False)

    def _first(self, event: Forward) -> _Model:
        model = event.model
        named = list(model.named_parameters())
        types: Counter[str] = Counter()
        for _, each in named:
            types[str(each.dtype).removeprefix("torch.")] += each.numel()
        trainable = {name: each for name, each in named if each.requires_grad}
        return _Model(
            self._names.of(model),
            ref(model),
            event.where,
            sum(each.numel() for _, each in named),
            sum(each.numel() for each in trainable.values()),
            dict(types),
            sorted({str(each.device.type) for _, each in named}),
            patterns(name for name, each in named if not each.requires_grad),
            patterns(trainable),
            {SHAPES: shapes(each for _, each in named), NAMES: in_order(name for name, _ in named)},
            {name: _bits(each) for name, each in trainable.items()},
            checkpoint=self._checkpoint(model),
            adapters=_adapters(model),
            shared_with=self._sharing(model),
            copy_of=self._copied(model),
            frozen_sums={name: _bits(each) for name, each in named if not each.requires_grad},
            sensitive=len(mode_dependent(model)),
        )

    def _sharing(self, model: nn.Module) -> str | None:
        known = ((seen.name, seen.model()) for seen in self._models.values())
        return next((name for name, other in known if other is not None and share_parameters(other, model)), None)

    def _copied(self, model: nn.Module) -> str | None:
        """Name of the updated model of which it is a copy, as that model is now."""
        for seen in self._models.values() if self._updates else ():
            other = seen.model()
            if other is not None and type(other) is type(model) and seen.modes:
                mine, its = (dict(each.named_parameters()) for each in (model, other))
                if mine.keys() == its.keys() and all(_bits(mine[name]) == _bits(its[name]) for name in mine):
                    return seen.name
        return None

    def on_backward(self, event: Backward) -> None:
        for seen, mode, active, _, _ in self._waiting.reached(event.reached):
            seen.modes[mode] += 1
            seen.active[active] += 1
        for each in self._waiting.given_up():
            self._asked(*each, graph=True)

    def on_end(self, event: End) -> None:
        for each in self._waiting.given_up(0):
            self._asked(*each, graph=True)
        self._look_for_changes()

    def _asked(self, seen: _Model, mode: str, active: int, where: str | None, made: int, *, graph: bool) -> None:
        seen.asked[mode] += 1
        seen.asked_active[active] += 1
        seen.with_graph += graph
        seen.without_graph += not graph
        seen.asked_where = seen.asked_where or where
        seen.asked_at.add(made)

    def on_step_begins(self, event: StepBegins) -> None:
        """Whether anything but an optimizer has changed tensors since the latest step, in the first updates."""
        for seen in self._models.values():
            model = seen.model() if seen.after_step else None
            now = {} if model is None else {name: _bits(p) for name, p in model.named_parameters()}
            seen.changed_between |= {name for name, bits in now.items() if seen.after_step.get(name, bits) != bits}
            seen.after_step = {}

    def on_step(self, event: Step) -> None:
        self._updates += 1
        if self._updates <= CLOSELY_WATCHED_UPDATES or self._updates % SELDOM == 0:
            self._look_for_changes()

    def _look_for_changes(self) -> None:
        """Look for changes of all tensors in the first updates, and later of those that have not changed yet."""
        first = self._updates <= CLOSELY_WATCHED_UPDATES
        for seen in self._models.values():
            model = seen.model() if first or seen.sums or seen.frozen_sums else None
            seen.gone |= seen.model() is None
            named = () if model is None else model.named_parameters()
            now = {n: _bits(p) for n, p in named if first or n in seen.sums or n in seen.frozen_sums}
            for sums in (seen.sums, seen.frozen_sums):
                changed = [name for name, was in sums.items() if now.get(name, was) != was]
                for name in changed:
                    del sums[name]
                seen.frozen_changed += changed if sums is seen.frozen_sums else []
            seen.after_step = now if first else {}

    def lines(self) -> Iterator[Line]:
        for key, seen in self._models.items():
            if seen.modes:
                yield from self._trained(seen, optimized=self._optimized.has(key))
                if seen.asked:
                    yield self._evaluated(seen)
            elif seen.asked:
                how = "was called and never trained"
                if seen.shared_with or seen.copy_of:
                    how = f"is called alone, with parameters of {seen.shared_with}"
                    how = how if seen.shared_with else f"has the weights of {seen.copy_of} and was not trained"
                text = f"{seen.name} {how}: {count(seen.parameters, 'parameter')}"
                facts = {"parameters": seen.parameters, "modes": sorted(seen.asked), **seen.known_by}
                yield line(
                    "model", f"{text}, in {' and '.join(sorted(seen.asked))} mode", facts, seen.where, of=seen.name
                )
        for shown, over in self._copies.items():
            followed = self._followed.get(shown)
            if over.follows and over.apart and not (followed is not None and followed.steps):
                yield _copied(over, () if followed is None else followed.weights)

    def _trained(self, seen: _Model, *, optimized: bool) -> Iterator[Line]:
        facts: dict[str, Any] = {
            "parameters": seen.parameters,
            "trainable": seen.trainable,
            "types": dict(sorted(seen.types.items())),
            "frozen": seen.frozen,
            **seen.known_by,
        }
        text = (
            f"{seen.name}: {count(seen.parameters, 'parameter')} ({', '.join(seen.types)}, {', '.join(seen.devices)})"
        )
        if seen.trainable == seen.parameters:
            text += ", all of them trainable"
        else:
            few = len(seen.trained) <= len(seen.frozen)
            text += f", {seen.trainable:,} of them trainable"
            text += f": {listed(seen.trained)}" if few else f"; frozen: {listed(seen.frozen)}"
        if not optimized:
            facts["in_no_optimizer"] = True
            text += "; in no optimizer, though gradients reach it"
        yield line("model", text, facts, seen.where, of=seen.name)
        if seen.checkpoint is not None:
            text = "weights from a checkpoint" + (f", but for {listed(seen.checkpoint)}" if seen.checkpoint else "")
            facts = {"from_checkpoint": True, "not_in_it": seen.checkpoint}
            yield line("model", text, facts, seen.where, of=seen.name)
        for name, asked in seen.adapters.items():
            text = f"adapter {name}: {asked['kind']} of rank {asked['rank']} on {listed(asked['targets'], 8)}"
            text += f", in {count(asked['modules'], 'module')}"
            absent = self._absent.get(name)
            text += f"; no module is named {listed(absent)}" if absent else ""
            yield line("model", text, asked | {"absent": absent}, seen.where, of=f"{seen.name}.adapter.{name}")
        still = patterns(seen.sums)
        if seen.gone and still:
            yield line("model", "", {"unchanged": "not known"}, seen.where, of=seen.name)
        elif still and self._updates:
            of_all = f"{len(seen.sums)} of its trainable tensors" if len(seen.sums) > 1 else "one trainable tensor"
            text = f"{of_all} never changed: {listed(still)}"
            yield line("model", text, {"unchanged": still}, seen.where, of=seen.name)
        else:
            yield line("model", "", {"unchanged": still}, seen.where, of=seen.name)
        if seen.frozen:
            changed = patterns(seen.frozen_changed)
            text = f"frozen and changed all the same: {listed(changed)}" if changed else ""
            yield line("model", text, {"frozen_changed": changed}, seen.where, of=seen.name)
        between = patterns(seen.changed_between)
        text = f"changed between updates, by something else than an optimizer: {listed(between)}" if between else ""
        yield line("model", text, {"changed_between": between}, seen.where, of=seen.name)
        modes = " and ".join(sorted(seen.modes))
        text = f"{seen.name} {'trained' if optimized else 'differentiated'} in {modes} mode"
        facts = {"mode": sorted(seen.modes), "autocast": seen.autocast}
        if seen.sensitive:
            active = sorted(seen.active)
            facts |= {"dropout_and_norms": seen.sensitive, "active": active}
            shown = " or ".join(map(str, active))
            text += f", {shown} of {count(seen.sensitive, 'module')} with dropout or batch statistics active"
        if seen.autocast:
            text += f", under autocast to {seen.autocast}"
        yield line("model", text, facts, seen.where, of=f"{seen.name}.training")

    def _checkpoint(self, model: nn.Module) -> list[str] | None:
        """What was not in the checkpoint that its weights come from, as far as transformers says."""
        inner = next((each for each in model.modules() if id(each) in self._loaded), None)
        return None if inner is None else patterns(self._loaded[id(inner)].get("missing_keys") or ())

    def _evaluated(self, seen: _Model) -> Line:
        modes = sorted(seen.asked)
        graph = "with a graph" if not seen.without_graph else "without gradients" if not seen.with_graph else "mixed"
        calls = seen.asked.total()
        facts = {
            "calls": calls,
            "modes": modes,
            "graph": graph,
            "active": sorted(seen.asked_active),
            "rounds": seen.asked_at.number,
            "after_updates": [min(seen.asked_at.first), max(seen.asked_at.latest())],
        }
        text = f"{seen.name} called {count(calls, 'time')} without an update, in {' and '.join(modes)} mode"
        if seen.sensitive == 0 and modes == ["train"]:
            text += " (which changes nothing in it)"
        elif modes == ["eval"] and any(seen.asked_active):
            text += f" with {max(seen.asked_active)} modules of dropout or batch statistics active"
        text += {"mixed": ", with and without a graph"}.get(graph, f", {graph}")
        text += f", after update {seen.asked_at.few(sorted(seen.asked_at.first), MOST_SHOWN)}" if seen.asked_at else ""
        return line("evaluation", text, facts, seen.asked_where, of=seen.name)


def _copied(over: CopyOver, weights: Sequence[float]) -> Line:
    """How a copy of a network follows it: as an average, or a target."""
    shares = sorted({float(f"{each:.3g}") for each in weights})
    text = f"{over.shown}, built as a network that is trained, "
    if shares:
        part = " to ".join(dict.fromkeys(map(number, (shares[0], shares[-1]))))
        text += "is set to it" if shares == [1.0] else f"follows it, each mean by {part} of it"
    else:
        text += "was changed by something else than an optimizer"
    return line("model", text, {"shares": shares}, over.where, of=f"copy.{over.shown}")


def _adapters(model: nn.Module) -> dict[str, dict[str, Any]]:
    """The adapters of a model of PEFT, by name: kind, rank, alpha, targets, and the number of modules that got one."""
    layers = adapted_layers(model).values()
    adapters = {}
    for name, config in adapters_of(model).items():
        targets = getattr(config, "target_modules", None) or ()
        adapters[str(name)] = {
            "kind": type(config).__name__.removesuffix("Config"),
            "rank": getattr(config, "r", None),
            "alpha": getattr(config, "lora_alpha", None),
            "targets": [targets] if isinstance(targets, str) else sorted(targets),
            "modules": sum(any(True for _ in tensors_of(layer, name)) for layer in layers),
        }
    return adapters


def _bits(tensor: torch.Tensor) -> int:
    """Checksum that shows whether a tensor has changed; 0 for one that is spread over processes."""
    return 0 if is_distributed(tensor) else checksum([real(tensor)])


def names_of(optimizer: Any, models: list[nn.Module]) -> dict[int, str]:
    """The names of an optimizer's tensors in the models that were called, by their ids."""
    held = {id(each) for each in held_by(optimizer)}
    return {id(p): name for model in models for name, p in model.named_parameters() if id(p) in held}
