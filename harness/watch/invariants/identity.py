"""Identity: what the forward uses, what gets gradients and what the optimizers hold are the same tensors."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.optim import Optimizer

from harness.watch.events_old import Backward, Forward, Step
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import held_by

SHARE = 0.25
"""Of an optimizer's tensors, or their elements, may go without gradients, as an unused pooler or head does."""

LOOKS, DEAD = 8, 2
"""So many looks at gradients that are all 0, of so many matrices, are no accident."""


@dataclass
class ModelSeen:
    """A model that a backward pass went through; names of its parameters."""

    name: str
    order: list[str]
    tensors: dict[str, weakref.ref[torch.Tensor]] = field(default_factory=dict)
    """By name, as they were last."""
    trained: set[str] = field(default_factory=set)
    """Got gradients."""
    holders: dict[str, list[HeldSeen]] = field(default_factory=dict)
    """The optimizers that held each at some time."""
    where: str | None = None

    @property
    def held(self) -> set[str]:
        """Names of those that an optimizer held that made steps."""
        return {name for name, holders in self.holders.items() if any(holder.stepped for holder in holders)}


@dataclass(eq=False)
class HeldSeen:
    """The trainable tensors of an optimizer."""

    made: str | None
    all: set[int] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)
    matrices: set[int] = field(default_factory=set)
    called: set[int] = field(default_factory=set)
    """Belong to a module that was called."""
    stepped: bool = False
    elements: dict[int, int] = field(default_factory=dict)
    """Of each tensor."""
    moved: set[int] = field(default_factory=set)
    """Had a gradient other than 0."""
    looked: int = 0


class Identity(Invariant):
    checks = (
        Statement("identity::optimizer-holds-the-model", "The optimizer holds the tensors that the forward pass uses."),
        Statement("identity::nothing-forgotten", "Everything that gets gradients is in an optimizer."),
        Statement("gradients::reach-the-parameters", "The loss's gradient reaches what the optimizer holds."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.models: weakref.WeakKeyDictionary[nn.Module, ModelSeen] = weakref.WeakKeyDictionary()
        self.all_models: list[ModelSeen] = []
        self.held: weakref.WeakKeyDictionary[Optimizer, HeldSeen] = weakref.WeakKeyDictionary()
        self.all_held: list[HeldSeen] = []
        self.loose: tuple[str, str | None] | None = None
        """Parameters that are in no module and no optimizer."""
        self.called: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def forward(self, event: Forward) -> None:
        self.called.add(event.model)

    def backward_begins(self, event: Backward) -> None:
        """Look for parameters that the loss depends on and that no module has registered."""
        if self.observer.update > 2 or event.inside_step or self.loose is not None:
            return
        registered = {id(p) for module in self.called for p in module.parameters()}
        registered |= {id(p) for o in self.observer.optimizers for p in held_by(o)}
        loose = [leaf for leaf in leaves(event.root) if id(leaf) not in registered]
        if loose:
            self.loose = f"{len(loose)} parameters, the first of shape {tuple(loose[0].shape)},", event.where

    def backward(self, event: Backward) -> None:
        if not self.observer.is_sampled() or event.inside_step:
            return
        in_optimizers: list[tuple[HeldSeen, set[int]]] = []
        called: set[int] | None = None
        for optimizer, seen in list(self.observer.optimizers.items()):
            held = self.held.get(optimizer)
            if held is None:
                self.held[optimizer] = held = HeldSeen(seen.made or seen.where)
                self.all_held.append(held)
            parameters = [p for p in held_by(optimizer) if p.requires_grad]
            held.all |= {id(p) for p in parameters}
            held.reached |= {id(p) for p in parameters if p.grad is not None}
            held.elements |= {id(p): p.numel() for p in parameters}
            held.looked += 1
            if held.looked <= LOOKS:
                unmoved = [p for p in parameters if p.dim() > 1 and p.grad is not None and id(p) not in held.moved]
                held.moved |= {id(p) for p in unmoved if p.grad is not None and p.grad.any()}
                held.matrices |= {id(p) for p in parameters if p.dim() > 1}
            if held.reached != held.all:
                if called is None:
                    called = {id(p) for module in self.called for p in module.parameters()}
                held.called |= held.all & called
            in_optimizers.append((held, {id(p) for p in held_by(optimizer)}))
        for forward in event.forwards:
            if forward.number in event.reached:
                self._look_at(forward, event, in_optimizers)

    def _look_at(self, forward: Forward, event: Backward, in_optimizers: list[tuple[HeldSeen, set[int]]]) -> None:
        model = self.models.get(forward.model)
        named = list(forward.model.named_parameters())
        if model is None:
            model = ModelSeen(type(forward.model).__name__, [name for name, p in named if p.requires_grad])
            self.models[forward.model] = model
            self.all_models.append(model)
        for name, p in named:
            known = model.tensors.get(name)
            if known is None or known() is not p:  # another tensor has taken its place
                model.tensors[name] = weakref.ref(p)
                model.trained.discard(name)
                model.holders.pop(name, None)
        model.where = event.where
        model.trained |= {name for name, p in named if p.requires_grad and p.grad is not None}
        for name, p in named:
            holders = model.holders.setdefault(name, [])
            holders += [held for held, ids in in_optimizers if id(p) in ids and held not in holders]

    def step(self, event: Step) -> None:
        held = self.held.get(event.optimizer)
        if held is not None:
            held.stepped = True
            if self.observer.in_backward:
                held.reached = held.all  # it steps as soon as a gradient is there, and clears it

    def ends(self, _: None) -> None:
        stale = [held for held in self.all_held if held.stepped and held.all and not held.reached]
        for held in self.all_held:
            if held.stepped and held.all:
                self._reached(held)
        stepped = any(held.stepped for held in self.all_held)
        if self.loose is not None and stepped:
            self._loose(*self.loose)
        if not stepped and not self.observer.complete:
            return  # it ended before its first update
        for model in self.all_models:
            forgotten = model.trained - model.held
            if forgotten and not (stale and not model.held):
                self._forgotten(model, forgotten)

    def _reached(self, held: HeldSeen) -> None:
        without = held.all - held.reached
        foreign = without - held.called
        several = f"{len(without)} of {len(held.all)} trainable tensors"
        if len(foreign) > SHARE * len(held.all) or (foreign and self._something_forgotten()):
            self.found(
                "identity::optimizer-holds-the-model",
                expected="an optimizer that holds the parameters of the model that is trained",
                observed=f"{len(foreign)} of its {len(held.all)} tensors belong to no model that was called, "
                "and never get a gradient",
                hint="Make the optimizer after the model is final (after from_pretrained, resizing, a new head, "
                "or moving to another class), from that model's parameters().",
                where=held.made,
                update=1,
            )
        elif len(without) > SHARE * len(held.all) or self._elements(held, without) > SHARE:
            self.found(
                "gradients::reach-the-parameters",
                expected="a gradient for every parameter that is to be trained",
                observed=f"{several} in the optimizer never get one, though their module is called",
                hint="Look for no_grad(), detach(), .data, .item() or argmax between these parameters and the loss; "
                "freeze what is not to be trained with requires_grad_(False).",
                where=self.all_models[0].where if self.all_models else held.made,
                update=1,
            )

        dead = (held.matrices & held.reached) - held.moved
        if held.looked >= LOOKS and len(dead) >= DEAD and not without - held.called:
            self.found(
                "gradients::reach-the-parameters",
                expected="gradients other than 0",
                observed=f"those of {len(dead)} matrices in the optimizer are exactly 0 in all updates looked at",
                hint="Look for two factors that both start at 0, and for rounding, sign or argmax between these "
                "parameters and the loss.",
                where=self.all_models[0].where if self.all_models else held.made,
                update=1,
            )

    def _elements(self, held: HeldSeen, which: set[int]) -> float:
        return sum(held.elements[each] for each in which) / max(1, sum(held.elements.values()))

    def _something_forgotten(self) -> bool:
        return any(model.trained - model.held for model in self.all_models)

    def _forgotten(self, model: ModelSeen, forgotten: set[str]) -> None:
        if any(finding.startswith("identity::optimizer") for finding in self.observer.findings):
            return
        names = [name for name in model.order if name in forgotten] or sorted(forgotten)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        # A head alone may be trained on purpose; what was thawed later was meant to be trained.
        thawed = forgotten - set(model.order)
        on_purpose = model.order[-1] not in forgotten and len(forgotten) > len(model.order) / 2 and not thawed
        if on_purpose:
            self.observer.note(
                f"{len(forgotten)} of {len(model.order)} trainable tensors of {model.name} get gradients and are in no "
                "optimizer; if that is meant, requires_grad_(False) says so and saves their backward pass"
            )
            return
        self.found(
            "identity::nothing-forgotten",
            expected="every trainable parameter of the model in an optimizer",
            observed=f"{shown} of {model.name} get gradients and are in none",
            hint="Give the optimizer model.parameters(), or freeze what is not to be trained with "
            "requires_grad_(False).",
            where=self._made(),
            update=1,
        )

    def _loose(self, loose: str, where: str | None) -> None:
        self.found(
            "identity::nothing-forgotten",
            expected="every parameter registered in a module, and in the optimizer",
            observed=f"{loose} get gradients, and are in neither",
            hint="Keep modules in nn.ModuleList or nn.ModuleDict, and parameters as attributes of a module.",
            where=where,
            update=1,
        )

    def _made(self) -> str | None:
        return next((held.made for held in self.all_held if held.stepped), None)


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
