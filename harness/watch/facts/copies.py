"""Copies: networks that are built as a trained one, such as target networks, momentum encoders and averages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import ReferenceType, ref

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness.torch_objects import first_values, held_by, is_distributed, real
from harness.watch.bounded import First
from harness.watch.events import End, Fact, Forward, Load, Step, StepBegins
from harness.watch.host import brought
from harness.watch.recogniser import Recogniser

MOST_MODULES = 256
"""Modules that are looked at. Copies are of a whole network, or of a large part of it."""

DEPTH = 3
"""How deep below a module that is called: agent.critic.encoder."""

MOST_VALUES = 4096
"""Values of a tensor that tell where it went."""

SEARCHED = (1, 8, 50)
"""Steps before which copies are looked for: a script may make them at its first update, or after a warmup."""

MOST_OF_A_BUILD = 4
"""Networks of one build that may be copies of one another; the layers of a network are more."""

FRAMES = 8
"""Number of the user's functions in whose variables a copy's name is looked for."""

MIN_UPDATES = 20
"""Updates after which statistics that never moved are no beginning any more."""

STEP_RTOL = 1e-3
"""How near a change must be to a step towards the network that is followed, relatively. Rounding is far below."""

ROUNDINGS = 16
"""Roundings of a value by which it may be off without a change: a mean of a value with itself soon gives the same one
again. By reasoning, what even a slow average has gone after a few updates."""


@dataclass(eq=False)
class _Statistics:
    """The running mean of a batch normalisation, and what it was at first."""

    norm: ReferenceType[_BatchNorm]
    began: torch.Tensor

    @property
    def moved(self) -> bool:
        norm = self.norm()
        return norm is not None and norm.running_mean is not None and not torch.equal(norm.running_mean, self.began)


@dataclass(eq=False)
class Copied:
    """A network that an optimizer trains, and another one of the same build."""

    trained: ReferenceType[nn.Parameter]
    """One matrix of each, the same one."""
    copy: ReferenceType[nn.Parameter]
    began: torch.Tensor
    """The copy's values when it was found."""
    shown: str
    """What the script calls the copy."""
    norms: tuple[_Statistics, _Statistics] | None
    """Statistics of the first batch normalisation of each, where there is one."""
    shares: bool = False
    follows: bool = False
    """Whether something but an optimizer changed the copy."""
    weights: list[float] = field(default_factory=list)
    """Weight of the trained network in each mean that the copy was set to, at the updates that were looked at."""
    steps: int = 0
    """Updates at which an optimizer changed the copy, too."""
    updates: int = 0
    """Updates of the trained network, over all."""
    where: str | None = None
    """Place of the trained network's update."""
    stale: str | None = None
    """Where the copy was called in eval mode with the statistics that it began with, though the other's had moved."""
    waits: bool = False
    """Whether the copy was not called so far: an attribute of the script's, which may be anything."""
    _after: torch.Tensor | None = None
    """The copy's values after the trained one's latest update that was looked at."""
    _before: torch.Tensor | None = None

    def values(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        one, other = self.trained(), self.copy()
        if one is None or other is None:
            return None
        values = brought([real(each).flatten()[:MOST_VALUES] for each in (one, other)])
        return values[0].float(), values[1].float()

    def step_begins(self) -> None:
        values, one, other = self.values(), self.trained(), self.copy()
        if values is None or one is None or other is None:
            return
        online, now = values
        self.shares |= one is not other and other.data_ptr() == one.data_ptr()
        last = self.began if self._after is None else self._after
        moved = not torch.equal(now, last)
        self.follows |= moved and (self.steps > 0 or self._has_gone(now, other.dtype))
        if moved and self._after is not None:
            way, change = online - last, now - last
            weight = float((change * way).sum() / (way * way).sum().clamp(min=1e-30))
            if float((change - weight * way).norm()) <= STEP_RTOL * float(change.norm()):
                self.weights.append(weight)
        self._before = now.clone()

    def _has_gone(self, now: torch.Tensor, dtype: torch.dtype) -> bool:
        """Whether the copy is further from where it began than rounding takes a mean of a network with itself."""
        return bool(((now - self.began).abs() > ROUNDINGS * torch.finfo(dtype).eps * self.began.abs()).any())

    def step_ends(self) -> None:
        values = self.values()
        self.updates += 1
        if values is None:
            return
        if self._before is not None:
            self.steps += not torch.equal(values[1], self._before)
        self._after, self._before = values[1].clone(), None

    def called(self, model: nn.Module, where: str | None) -> None:
        if self.norms is None or self.stale is not None or self.updates < MIN_UPDATES or not self.follows:
            return
        trained, copy = (each.norm() for each in self.norms)
        if trained is None or copy is None or copy.training or self.norms[1].moved or not self.norms[0].moved:
            return
        if any(module is copy for module in model.modules()):
            self.stale = where

    def missed(self) -> None:
        """An update that is not looked at."""
        self.updates += 1
        self._after = None


class CopyFound(Fact):
    """A network of the same build as one that is about to be trained. ``where`` is the step."""

    needs = "network of the same build as a trained one"
    in_windows = "first"
    shown: str = "target"
    """What the script calls the copy."""
    shares: bool = False
    """Whether both have parameters of their own that share one memory."""


class CopyFollowed(Fact):
    """The network of a copy was trained in an update that is looked at. ``where`` is the step."""

    needs = "moving average of a network"
    in_windows = "first"
    shown: str = "target"
    weights: Sequence[float] = ()
    """Weight of the trained network in each mean that the copy was set to so far: 1 copies it whole."""
    steps: int = 0
    """Updates so far in which an optimizer changed the copy, too."""


class CopyOver(Fact):
    """A run is over in which a network was trained that has a copy. ``where`` is the latest step."""

    of_run = True
    shown: str = "target"
    updates: int = 0
    """Updates of the network."""
    follows: bool = False
    """Whether something but an optimizer changed the copy."""
    apart: bool = True
    """Whether neither its memory nor an optimizer's step is behind what the copy was all the time."""
    has_norms: bool = False
    """Whether both have a batch normalisation."""
    stale: str | None = None
    """The line that called the copy in eval mode with the running statistics that it began with, though the network's
    had moved; None without one."""
    loaded: Collection[str | None] = ()
    """Lines of the run that loaded a state."""


class Copies(Recogniser):
    """Each trained network with the others of its build that no module is shared with."""

    makes = (CopyFound, CopyFollowed, CopyOver)

    def begin(self) -> None:
        self.all = First[Copied](16)  # each is looked at in every update
        self._of: dict[int, list[Copied]] = defaultdict(list)
        """Id of an optimizer to the networks it trains that may have a copy."""
        self._known: set[tuple[int, int]] = set()
        self._steps = 0
        self._with_norms = False
        self._loaded: set[str | None] = set()
        """Lines that loaded a state."""

    def on_step_begins(self, event: StepBegins) -> None:
        self._steps += 1
        if self._steps in SEARCHED:
            self._search()
        if event.sampled:
            for copy in self._of.get(id(event.optimizer), ()):
                copy.where = event.where
                copy.step_begins()
                if not copy.waits:
                    self.tell(CopyFound(shown=copy.shown, shares=copy.shares, where=copy.where))

    def on_forward(self, event: Forward) -> None:
        self.monitor.number_of(event.model)  # by which it is among the models, also where nobody else asks
        if not self._with_norms or event.gradients:
            return
        for copy in self.all:
            if copy.waits and copy.norms is not None:
                norm = copy.norms[1].norm()
                copy.waits = not any(module is norm for module in event.model.modules())
            if self.monitor.is_sampled() and not copy.waits:
                copy.called(event.model, event.where)

    def on_step(self, event: Step) -> None:
        for copy in self._of.get(id(event.optimizer), ()):
            if event.sampled:
                copy.step_ends()
                if not copy.waits:
                    self.tell(CopyFollowed(shown=copy.shown, weights=copy.weights, steps=copy.steps, where=copy.where))
            else:
                copy.missed()

    def on_load(self, event: Load) -> None:
        self._loaded.add(event.where)

    def on_end(self, event: End) -> None:
        for copy in self.all:
            if copy.waits:
                continue
            self.tell(
                CopyOver(
                    shown=copy.shown,
                    updates=copy.updates,
                    follows=copy.follows,
                    apart=not copy.shares and not copy.steps,
                    has_norms=copy.norms is not None,
                    stale=copy.stale,
                    loaded=self._loaded,
                    where=copy.where,
                )
            )

    def _search(self) -> None:
        held = {id(p): id(o) for o in list(self.monitor.optimizers) for p in held_by(o)}
        builds: dict[tuple[tuple[str, torch.Size], ...], list[nn.Module]] = defaultdict(list)
        for module in self._modules():
            build = tuple((name, p.shape) for name, p in module.named_parameters())
            if any(len(shape) > 1 for _, shape in build):
                builds[build].append(module)
        for in_optimizer in (False, True):  # those that no optimizer holds first
            paired: set[int] = set()
            for modules in sorted(builds.values(), key=lambda each: -len(list(each[0].parameters()))):
                if in_optimizer and len(modules) > MOST_OF_A_BUILD:
                    continue  # the layers of a network
                parts = [{id(p) for p in module.parameters()} for module in modules]
                matrices = [next(_matrices(module)) for module in modules]
                for one, mine in enumerate(matrices):
                    for other, copy in enumerate(matrices):
                        both = parts[one] | parts[other]
                        if id(mine) not in held or mine is copy or both <= paired:
                            continue
                        if (id(copy) in held) == in_optimizer:
                            self._add((modules[one], modules[other]), mine, copy, held)
                            paired |= both

    def _add(
        self, modules: tuple[nn.Module, nn.Module], mine: nn.Parameter, copy: nn.Parameter, held: dict[int, int]
    ) -> None:
        if (id(mine), id(copy)) in self._known or self.all.is_full:
            return
        if any(is_distributed(p) or p.is_meta or not p.numel() for p in (mine, copy)):
            return
        self._known.add((id(mine), id(copy)))
        values = first_values(copy, MOST_VALUES).float()
        if id(copy) in held and not torch.equal(values, first_values(mine, MOST_VALUES).float()):
            return  # two networks that are trained side by side
        one, other = (_statistics(module) for module in modules)
        both = (one, other) if one is not None and other is not None else None
        pair = Copied(ref(mine), ref(copy), values, self._name_of(copy), both)
        pair.waits = not any(copy is each for called in list(self.monitor.models) for each in called.parameters())
        self.all.append(pair)
        self._with_norms |= both is not None
        self._of[held[id(mine)]].append(pair)

    def _in_variables(self) -> Iterator[tuple[str, nn.Module]]:
        """Modules that are variables of the script, or attributes of one, by their names."""
        for variables in self.monitor.locator.variables(FRAMES):
            for name, value in list(variables.items()):
                if isinstance(value, nn.Module):
                    yield name, value
                for key, member in list(getattr(value, "__dict__", {}).items()):
                    if isinstance(member, nn.Module):
                        yield f"{name}.{key}", member

    def _name_of(self, copy: nn.Parameter) -> str:
        """ "target", where a variable, an attribute or a part of a module has that name."""
        for name, module in self._in_variables():
            if next(_matrices(module), None) is copy:
                return name
        for called in list(self.monitor.models):
            for key, module in called.named_children():
                if next(_matrices(module), None) is copy:
                    return f"{key} of {type(called).__name__}"
        return "a copy of the network"

    def _modules(self) -> Iterator[nn.Module]:
        """Modules that were called, and their parts; and networks with a batch normalisation that the script has in its
        variables, which may be called at the end only."""
        seen: set[int] = set()
        waiting = [each for _, each in self._in_variables() if _statistics(each) is not None]
        for called in [*self.monitor.models, *waiting]:
            for name, module in called.named_modules():
                if name.count(".") < DEPTH and id(module) not in seen:
                    seen.add(id(module))
                    yield module
                if len(seen) >= MOST_MODULES:
                    return


def _matrices(module: nn.Module) -> Iterator[nn.Parameter]:
    return (p for p in module.parameters() if p.dim() > 1)


def _statistics(module: nn.Module) -> _Statistics | None:
    for layer in module.modules():
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None:
            return _Statistics(ref(layer), layer.running_mean.clone())
    return None
