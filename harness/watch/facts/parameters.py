"""Parameters: which of them the models use, which get gradients, and which optimizers hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by
from harness.watch.check import Fact
from harness.watch.events import Backward, BackwardBegins, Forward, Step

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MAX_SHARE_WITHOUT_GRADIENT = 0.25
"""Largest share of an optimizer's tensors, or of their elements, that may go without gradients, as an unused pooler or
head does. A guess."""

LOOKS = 8
"""Backward passes after which the gradients of an optimizer's matrices have been looked at for being 0. A guess."""

KEPT = 64
"""Models, and optimizers, that are judged at the end, the first ones: more are made by a loop, whose rounds are alike.
A guess."""

WITH_LOOSE = 2
"""Updates in which parameters are looked for that no module has registered: the graph is searched for them."""


@dataclass(eq=False)
class OptimizerTensors:
    """The trainable tensors of an optimizer, by their ids."""

    made: str | None
    all: set[int] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)
    """Had a gradient."""
    matrices: set[int] = field(default_factory=set)
    called: set[int] = field(default_factory=set)
    """Had no gradient and belong to a module that was called."""
    nonzero: set[int] = field(default_factory=set)
    """Matrices that had a gradient other than 0."""
    elements: dict[int, int] = field(default_factory=dict)
    """Of each tensor."""
    looks: int = 0
    stepped: bool = False

    @property
    def without_gradient(self) -> set[int]:
        return self.all - self.reached

    @property
    def foreign(self) -> set[int]:
        """Those without a gradient that belong to no module that was called."""
        return self.without_gradient - self.called

    @property
    def share_of_elements(self) -> float:
        """The share of all elements that never had a gradient."""
        return sum(self.elements[each] for each in self.without_gradient) / max(1, sum(self.elements.values()))

    def look(self, optimizer: Optimizer) -> None:
        parameters = [p for p in held_by(optimizer) if p.requires_grad]
        self.all |= {id(p) for p in parameters}
        self.reached |= {id(p) for p in parameters if p.grad is not None}
        self.elements |= {id(p): p.numel() for p in parameters}
        self.looks += 1
        if self.looks <= LOOKS:
            matrices = [p for p in parameters if p.dim() > 1]
            self.matrices |= {id(p) for p in matrices}
            unmoved = [p for p in matrices if id(p) not in self.nonzero]
            self.nonzero |= {id(p) for p in unmoved if p.grad is not None and p.grad.any()}


@dataclass(eq=False)
class ModelTensors:
    """The parameters of a model that a backward pass went through, by their names."""

    name: str
    order: list[str]
    """Those that were trainable at first."""
    where: str | None = None
    """Of the latest backward pass through it."""
    tensors: dict[str, ref[torch.Tensor]] = field(default_factory=dict)
    """As they were last."""
    trained: set[str] = field(default_factory=set)
    """Had gradients."""
    holders: dict[str, list[OptimizerTensors]] = field(default_factory=dict)
    """Optimizers that held each at some time, until one of them has made a step."""

    @property
    def held(self) -> set[str]:
        """Those that an optimizer held that made steps."""
        return {name for name, holders in self.holders.items() if any(holder.stepped for holder in holders)}

    @property
    def forgotten(self) -> set[str]:
        """Those that had gradients, and that no optimizer held that made steps."""
        return self.trained - self.held

    def look(self, model: nn.Module, in_optimizers: list[tuple[OptimizerTensors, set[int]]]) -> None:
        for name, p in model.named_parameters():
            known = self.tensors.get(name)
            if known is None or known() is not p:  # another tensor has taken its place
                self.tensors[name] = ref(p)
                self.trained.discard(name)
                self.holders.pop(name, None)
            if p.requires_grad and p.grad is not None:
                self.trained.add(name)
            holders = self.holders.setdefault(name, [])
            if not any(holder.stepped for holder in holders):
                holders += [held for held, ids in in_optimizers if id(p) in ids and held not in holders]
                del holders[:-KEPT]


@dataclass(frozen=True)
class LooseParameters:
    """Parameters that the loss depends on, and that are in no module and no optimizer."""

    number: int
    shape: tuple[int, ...]
    """Of the first."""
    where: str | None


class Parameters(Fact):
    """The models, the optimizers, and which tensors got gradients."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.models: list[ModelTensors] = []
        self.optimizers: list[OptimizerTensors] = []
        self._of_model: WeakKeyDictionary[nn.Module, ModelTensors] = WeakKeyDictionary()
        self._of_optimizer: WeakKeyDictionary[Optimizer, OptimizerTensors] = WeakKeyDictionary()
        self.called: WeakKeyDictionary[nn.Module, None] = WeakKeyDictionary()
        """The modules that were called, in the order of their first calls."""
        self.loose: LooseParameters | None = None
        self.stepped = False
        """Whether any of the optimizers made a step."""

    @property
    def something_forgotten(self) -> bool:
        return any(model.forgotten for model in self.models)

    def holds_another_model(self, held: OptimizerTensors) -> bool:
        """Whether an optimizer that makes steps holds tensors of a model that is never called."""
        several = len(held.foreign) > MAX_SHARE_WITHOUT_GRADIENT * len(held.all)
        return held.stepped and (several or (bool(held.foreign) and self.something_forgotten))

    def on_forward(self, event: Forward) -> None:
        self.called[event.model] = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.monitor.update > WITH_LOOSE or event.inside_step or self.loose is not None:
            return
        registered = self._ids_of_called() | {id(p) for o in self.monitor.optimizers for p in held_by(o)}
        loose = [leaf for leaf in leaves(event.root) if id(leaf) not in registered]
        if loose:
            self.loose = LooseParameters(len(loose), tuple(loose[0].shape), event.where)

    def on_backward(self, event: Backward) -> None:
        if not self.monitor.is_sampled() or event.inside_step:
            return
        in_optimizers = []
        for optimizer in list(self.monitor.optimizers):
            held = self._optimizer(optimizer)
            held.look(optimizer)
            in_optimizers.append((held, {id(p) for p in held_by(optimizer)}))
        if any(held.without_gradient for held, _ in in_optimizers):
            called = self._ids_of_called()
            for held, _ in in_optimizers:
                held.called |= held.without_gradient & called
        for forward in event.forwards:
            if forward.number in event.reached:
                model = self._model(forward.model)
                model.where = event.where
                model.look(forward.model, in_optimizers)

    def on_step(self, event: Step) -> None:
        held = self._of_optimizer.get(event.optimizer)
        if held is not None:
            held.stepped = self.stepped = True
            if self.monitor.in_backward:
                held.reached = held.all  # it steps as soon as a gradient is there, and clears it

    def _ids_of_called(self) -> set[int]:
        return {id(p) for module in self.called for p in module.parameters()}

    def _optimizer(self, optimizer: Optimizer) -> OptimizerTensors:
        if optimizer not in self._of_optimizer:
            seen = self.monitor.optimizers[optimizer]
            self._of_optimizer[optimizer] = held = OptimizerTensors(seen.made or seen.where)
            if len(self.optimizers) < KEPT:
                self.optimizers.append(held)
        return self._of_optimizer[optimizer]

    def _model(self, model: nn.Module) -> ModelTensors:
        if model not in self._of_model:
            trainable = [name for name, p in model.named_parameters() if p.requires_grad]
            self._of_model[model] = seen = ModelTensors(type(model).__name__, trainable)
            if len(self.models) < KEPT:
                self.models.append(seen)
        return self._of_model[model]


def leaves(root: torch.Tensor) -> list[nn.Parameter]:
    """The parameters that a tensor depends on, by its graph."""
    found: dict[int, nn.Parameter] = {}
    waiting, seen = [root.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, nn.Parameter):
            found[id(variable)] = variable
        waiting += [each for each, _ in node.next_functions]
    return list(found.values())
