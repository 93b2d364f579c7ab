"""The tensors that optimizers and models hold, and how they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness.findings import few
from harness.torch_objects import held_by
from harness.watch.bounded import Latest


@dataclass(eq=False)
class OptimizerTensors:
    """The trainable tensors of an optimizer, by their ids."""

    made: str | None
    all: set[int] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)
    """Had a gradient."""
    matrices: set[int] = field(default_factory=set)
    called: set[int] = field(default_factory=set)
    """Had no gradient and belong to a model that was called."""
    left_out: set[int] = field(default_factory=set)
    """Tensors of those that are in a part of the model that never was called."""
    nonzero: set[int] = field(default_factory=set)
    """Matrices that had a gradient other than 0."""
    elements: dict[int, int] = field(default_factory=dict)
    """Number of elements of each tensor."""
    looks: int = 0
    """Updates whose gradients were looked at."""
    since_step: int = 0
    """Looks since its latest step: at the micro-batches of one update."""
    inputs: set[int] = field(default_factory=set)
    """Are in no module, and a model's input was computed from them."""
    stepped: bool = False
    cleared: int = 0
    """Calls of its own zero_grad."""

    @property
    def without_gradient(self) -> set[int]:
        return self.all - self.reached

    @property
    def foreign(self) -> set[int]:
        """Tensors without a gradient that belong to no module that was called."""
        return self.without_gradient - self.called

    @property
    def cut_off(self) -> set[int]:
        """Tensors without a gradient though their module was called."""
        return (self.without_gradient & self.called) - self.left_out

    def share_of_elements(self, tensors: set[int]) -> float:
        """The share that some of its tensors have of all its elements."""
        return sum(self.elements[each] for each in tensors) / max(1, sum(self.elements.values()))

    def look(self, optimizer: Optimizer, *, of_single_tokens: bool) -> None:
        """Look at the gradients that a backward pass left; between single tokens there is no attention to learn."""
        parameters = [p for p in held_by(optimizer) if p.requires_grad]
        self.all |= {id(p) for p in parameters}
        self.reached |= {id(p) for p in parameters if p.grad is not None}
        self.elements |= {id(p): p.numel() for p in parameters}
        self.looks += self.since_step == 0 and not of_single_tokens
        self.since_step += 1
        if self.looks <= GRADIENT_SAMPLES:
            matrices = [p for p in parameters if p.dim() > 1]
            self.matrices |= {id(p) for p in matrices}
            unmoved = [p for p in matrices if id(p) not in self.nonzero]
            self.nonzero |= {id(p) for p in unmoved if p.grad is not None and p.grad.any()}


@dataclass(eq=False)
class ModelTensors:
    """The parameters of a model that a backward pass went through, by their names."""

    name: str
    order: list[str]
    """Names of parameters that were trainable at first."""
    chooses: bool = False
    """Whether its class says itself what its parameters are: what it leaves out may be meant to be."""
    where: str | None = None
    """Place of the latest backward pass through it."""
    tensors: dict[str, ref[torch.Tensor]] = field(default_factory=dict)
    """Tensors by name, as they were last."""
    trained: set[str] = field(default_factory=set)
    """Had gradients."""
    unheld: dict[str, torch.Tensor] = field(default_factory=dict)
    """What a few were that had gradients, and that no optimizer holds that made steps."""
    by_hand: bool = False
    """Whether such tensors were changed all the same: the script writes its updates itself."""
    holders: dict[str, Latest[OptimizerTensors]] = field(default_factory=dict)
    """Optimizers that held each at some time, until one of them has made a step."""

    @property
    def held(self) -> set[str]:
        """Names of parameters held by an optimizer that has stepped."""
        return {name for name, holders in self.holders.items() if any(holder.stepped for holder in holders)}

    @property
    def forgotten(self) -> set[str]:
        """Names of parameters that had gradients and that no optimizer held which has stepped."""
        return self.trained - self.held

    @property
    def trains_a_part(self) -> bool:
        """Whether a head alone may be trained on purpose, or besides it only vectors, as the biases of all modules.

        What was thawed later was meant to be trained.
        """
        forgotten, last = self.forgotten, self.order[-1]
        if forgotten - set(self.order) or last in forgotten:
            return False
        head = last.rpartition(".")[0]
        others = [name for name in self.order if name not in forgotten and name.rpartition(".")[0] != head]
        tensors = [self.tensors[name]() for name in others]
        only_vectors = bool(others) and all(each is not None and each.dim() <= 1 for each in tensors)
        return only_vectors or len(forgotten) > len(self.order) / 2

    def look(self, model: nn.Module, in_optimizers: list[tuple[OptimizerTensors, set[int]]]) -> None:
        for name, p in model.named_parameters():
            known = self.tensors.get(name)
            if known is None or known() is not p:  # another tensor has taken its place
                self.tensors[name] = ref(p)
                self.trained.discard(name)
                self.holders.pop(name, None)
            if p.requires_grad and p.grad is not None:
                self.trained.add(name)
            holders = self.holders.setdefault(name, Latest())
            if not any(holder.stepped for holder in holders):
                holders += [held for held, ids in in_optimizers if id(p) in ids and held not in holders]
        self._follow_unheld()

    def _follow_unheld(self) -> None:
        """See whether something else than an optimizer changes a few of those that no optimizer has changed yet."""
        if self.by_hand:
            return
        now = {name: tensor for name in self.forgotten if (tensor := self.tensors[name]()) is not None}
        self.by_hand = any(
            name in now and before.shape == now[name].shape and not torch.equal(now[name], before)
            for name, before in self.unheld.items()
        )
        small = [name for name in self.unheld if name in now] or sorted(now, key=lambda name: now[name].numel())
        self.unheld = (
            {name: now[name].detach().clone() for name in small[:FOLLOWED_TENSORS]} if not self.by_hand else {}
        )


@dataclass(eq=False)
class LooseParameters:
    """Tensors that the loss depends on and that lie before no model's input, in no module and no optimizer."""

    shapes: list[tuple[int, ...]]
    where: str | None
    values: list[tuple[ref[torch.Tensor], torch.Tensor]]
    """What they were when they were first seen, but for large ones."""
    by_hand: bool = False
    """Whether they were changed all the same."""

    def look(self) -> None:
        for tensor, before in self.values:
            now = tensor()
            self.by_hand = self.by_hand or (now is not None and not torch.equal(now, before))


IN_BLOCK = re.compile(r"(?P<stack>.+?)\.(?P<block>\d+)\.(?P<member>[^.]+)\.")
"""The name of a parameter of a member of one of a stack's blocks."""


MIN_BLOCKS = 2
"""Blocks of a stack. By reasoning, what is left out of one of one may be somebody's second head."""


GRADIENT_SAMPLES = 8
"""Updates after which the gradients of an optimizer's matrices have been looked at for being 0."""


FOLLOWED_TENSORS = 4
"""Tensors of a model whose values are followed where no optimizer's step changes them: the smallest."""


NAMES_SHOWN = 3
"""Names that are shown."""


def names(known: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    return few(known, NAMES_SHOWN)
