"""Parameters: which of them the models use, which get gradients, and which optimizers hold them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by, held_by_any, leaves, registered
from harness.watch.bounded import MOST, First
from harness.watch.events import Backward, BackwardBegins, Combined, End, Fact, Forward, Step, ZeroGrad
from harness.watch.facts.held_tensors import (
    FOLLOWED_TENSORS,
    GRADIENT_SAMPLES,
    IN_BLOCK,
    MIN_BLOCKS,
    LooseParameters,
    ModelTensors,
    OptimizerTensors,
    names,
)
from harness.watch.monitor import HELD, ManualUpdate
from harness.watch.recogniser import Recogniser

MAX_SHARE_WITHOUT_GRADIENT = 0.25
"""Largest share of an optimizer's tensors, or of their elements, that may go without gradients, as an unused pooler or
head does."""


WITH_LOOSE = 2
"""Updates in which parameters are looked for that no module has registered: the graph is searched for them."""


MAX_COPIED_ELEMENTS = 160_000
"""Elements above which a tensor that is in no module is not copied."""


class TensorsHeld(Fact):
    """What became of the trainable tensors of an optimizer that made steps, at the end of the run.

    ``where`` is the latest backward pass of the first model, or else where the optimizer was made.
    """

    needs = "optimizer step"
    in_windows = "first"
    of_run = True
    made: str | None = None
    """Where the optimizer was made."""
    tensors: int
    foreign: int = 0
    """Tensors that got no gradient and belong to no model that was called."""
    of_another_model: bool = False
    """Whether it holds a model that is never called in the place of the one that is trained."""
    not_held: Sequence[str] = ()
    """Parameters of the model in use that got gradients and are in no optimizer, where it holds others of it."""
    replaced_at: str | None = None
    """The line that puts the module of these in its place."""
    without_gradient: int = 0
    """Tensors that never got a gradient though their model was called, or, where the loss reaches none, all."""
    called: bool = True
    """Whether the models of all of these were called."""
    share_of_elements: float = 0.0
    """Share of all its elements that is in tensors without a gradient whose model was called."""
    left_out: int = 0
    """Tensors without a gradient that are in parts, of models that are called, that never are."""
    share_left_out: float = 0.0
    """Share of all its elements that is in those tensors."""
    shown_left_out: str = ""
    """A few of these, by their names."""
    shown: str = ""
    """A few of those without a gradient, by their names."""
    ends_in: tuple[int, ...] | None = None
    """The shape of the new tensor in which the loss's graph ends, where no tensor gets a gradient."""
    ends_at: str | None = None
    """The line of that loss's backward pass."""
    any_cut_off: bool = False
    """Whether tensors of any optimizer of the run got no gradient though their model was called."""
    in_each: str | None = None
    """A member of the script's own blocks that got none in any of them, while other members did: "norm of blocks.*"."""
    blocks: int = 0
    """How many there are."""


class ZeroGradients(Fact):
    """Matrices of an optimizer had gradients of exactly 0 in all updates that were looked at, at the end of the run.

    ``where`` is as that of :class:`TensorsHeld`.
    """

    in_windows = "first"
    of_run = True
    matrices: int
    shown: str = ""


class ModelHeld(Fact):
    """A model whose parameters got gradients, at the end of a run with optimizer steps. ``where`` made an optimizer."""

    needs = "model whose parameters got gradients"
    in_windows = "first"
    of_run = True
    model: str
    """The name of its class."""
    forgotten: Sequence[str] = ()
    """The parameters that got gradients, that are in no optimizer, and that nothing shows to be left out on purpose."""


class LooseTensors(Fact):
    """What a run's losses depend on that is in no module and in no optimizer, at its end."""

    needs = "optimizer step"
    in_windows = "first"
    of_run = True
    shapes: Sequence[tuple[int, ...]] = ()


class Parameters(Recogniser):
    """The models, the optimizers, and which tensors got gradients."""

    makes = (TensorsHeld, ZeroGradients, ModelHeld, LooseTensors)

    def begin(self) -> None:
        self._weighed = False
        """Whether a term of a loss was given a weight of 0: then it is to have no gradient."""
        self.models = First[ModelTensors]()
        self.optimizers = First[OptimizerTensors]()
        self._of_model: WeakKeyDictionary[nn.Module, ModelTensors] = WeakKeyDictionary()
        self._of_optimizer: WeakKeyDictionary[Optimizer, OptimizerTensors] = WeakKeyDictionary()
        self.called: WeakKeyDictionary[nn.Module, None] = WeakKeyDictionary()
        """The modules that were called, in the order of their first calls."""
        self.names: dict[int, tuple[str, str]] = {}
        """Id of a tensor of the modules that were called to the model's class, and the name in it."""
        self._parts: WeakSet[nn.Module] = WeakSet()
        """The modules that were called in a model that was called, as far as that was seen."""
        self._templates: set[int] = set()
        """The ids of tensors of layers that a stack was made of copies of."""
        self.loose: LooseParameters | None = None
        self.ends_in: tuple[int, ...] | None = None
        """The shape of a tensor in which a loss's graph ended that reached nothing that is trained."""
        self.ends_at: str | None = None
        """Where that loss's backward pass began."""
        self._plain: list[ref[torch.Tensor]] = []
        """Tensors that are no nn.Parameter and got gradients like one."""
        self._plain_since = 0
        """The update in which they were first seen."""
        self.stepped = False
        """Whether any of the optimizers made a step."""

    def shown(self, tensors: Collection[int]) -> str:
        """A few of the tensors with these ids, by their names: "head.weight, head.bias and 2 more of Net"."""
        by_model: dict[str, list[str]] = {}
        for tensor, (model, name) in self.names.items():
            if tensor in tensors:
                by_model.setdefault(model, []).append(name)
        if not by_model:
            return f"{len(tensors)} tensors"
        return "; ".join(f"{names(known)} of {model}" for model, known in by_model.items())

    def name_of(self, tensor: torch.Tensor) -> str:
        """Name of a tensor of a module that was called; of any other its shape."""
        return self.shown({id(tensor)}) if id(tensor) in self.names else f"a tensor of shape {tuple(tensor.shape)}"

    @property
    def by_hand(self) -> bool:
        """Whether the script writes updates itself."""
        return any(model.by_hand for model in self.models)

    @property
    def something_forgotten(self) -> bool:
        return any(model.forgotten for model in self.models)

    @property
    def finds_inputs(self) -> bool:
        """Whether updates are made to what a model is given, such as an image or a latent code."""
        return any(held.stepped and held.inputs for held in self.optimizers)

    def left_out(self) -> list[ModelTensors]:
        """Models of which no optimizer holds parameters with gradients, and nothing else changes them.

        Where the only optimizer holds a model that is never called, that is the fault, and not what it lacks.
        """
        stale = any(held.stepped and held.all and not held.reached for held in self.optimizers)
        return [
            model for model in self.models if model.forgotten and not model.by_hand and not (stale and not model.held)
        ]

    def may_be_meant(self, model: ModelTensors) -> bool:
        """Whether what is left out of the optimizers may be meant to be."""
        return (self.finds_inputs and not model.held) or model.chooses or model.trains_a_part

    def finds_input(self, optimizer: Optimizer) -> bool:
        """Whether this optimizer changes what a model is given."""
        return optimizer in self._of_optimizer and bool(self._of_optimizer[optimizer].inputs)

    def holds_another_model(self, held: OptimizerTensors) -> bool:
        """Whether an optimizer that makes steps holds tensors of a model that is never called."""
        if self.ends_in is not None and not held.reached:
            return False  # the loss reaches nothing
        all_of_them = not held.reached and len(held.foreign) > MAX_SHARE_WITHOUT_GRADIENT * len(held.all)
        return held.stepped and (all_of_them or (bool(held.foreign) and self.something_forgotten))

    def on_forward(self, event: Forward) -> None:
        if event.at.sampled:
            self._parts.update(event.parts)
        if event.model not in self.called:
            self.called[event.model] = None
            if len(self.called) <= MOST:
                self._learn_names(event.model)
                self._templates |= {id(p) for p in _templates(event.model)}

    def _learn_names(self, model: nn.Module) -> None:
        self.names |= {id(p): (type(model).__name__, name) for name, p in model.named_parameters()}

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.inside_step or not self.monitor.is_sampled():
            return
        if self.loose is not None:
            self.loose.look()
        elif self.monitor.update <= WITH_LOOSE:
            self._look_for_loose(event)

    def _look_for_loose(self, event: BackwardBegins) -> None:
        registered = self._ids_of_called() | held_by_any(self.monitor.optimizers)
        reached = leaves(event.root)
        found = [leaf for leaf in reached if id(leaf) not in registered]
        if found and len(found) == len(reached):
            self.ends_in, self.ends_at = tuple(found[0].shape), event.where
        loose: list[torch.Tensor] = [leaf for leaf in found if isinstance(leaf, nn.Parameter)]
        if not loose and event.forwards and len(event.forwards) < HELD:
            inputs = before_inputs(event.forwards)
            plain = [leaf for leaf in found if id(leaf) not in inputs]
            again = [leaf for leaf in plain if any(before() is leaf for before in self._plain)]
            # What a script differentiates by, such as the points of a differential equation, is a model's input.
            loose = again if self.monitor.update > self._plain_since else []
            if not self._plain:
                self._plain, self._plain_since = [ref(leaf) for leaf in plain[:MOST]], self.monitor.update
        if loose:
            values = [(ref(leaf), leaf.detach().clone()) for leaf in loose if leaf.numel() <= MAX_COPIED_ELEMENTS]
            self.loose = LooseParameters([tuple(leaf.shape) for leaf in loose], event.where, values[:FOLLOWED_TENSORS])

    def on_backward(self, event: Backward) -> None:
        if not self.monitor.is_sampled() or event.inside_step:
            return
        in_optimizers = []
        single = bool(event.forwards) and all(_is_of_single_tokens(forward) for forward in event.forwards)
        for optimizer in list(self.monitor.optimizers):
            if isinstance(optimizer, ManualUpdate):
                continue  # what it does not update may never have been meant to be
            held = self._optimizer(optimizer)
            held.look(optimizer, of_single_tokens=single)
            held.all -= self._templates & held.without_gradient
            ids = {id(p) for p in held_by(optimizer)}
            in_optimizers.append((held, ids))
            if loose := ids - self.names.keys() - held.inputs:
                held.inputs |= loose & before_inputs(event.forwards)
        if any(held.without_gradient for held, _ in in_optimizers):
            called, used = self._ids_of_called(), self._ids_of_used()
            for held, _ in in_optimizers:
                held.called |= held.without_gradient & called
                held.left_out = (held.without_gradient & called) - used
            for module in list(self.called)[:MOST]:
                self._learn_names(module)
        for forward in event.forwards:
            if forward.number in event.reached:
                model = self._model(forward.model)
                model.where = event.where
                model.look(forward.model, in_optimizers)

    def on_end(self, event: End) -> None:
        by_hand = self.by_hand or (self.loose is not None and self.loose.by_hand)
        if by_hand:
            self.monitor.updates_by_hand()
        if self.monitor.updated_by_hand and not self.monitor.has_optimizer:
            self.monitor.note("updates are made without an optimizer of torch: they are not compared with a formula")

        if self.stepped:
            self._tell_of_models()
            self.tell(self._loose_tensors())
        for held in self.optimizers:
            if held.stepped:
                self._tell_of(held)

    def _loose_tensors(self) -> LooseTensors:
        if self.loose is None or self.loose.by_hand:
            return LooseTensors()
        return LooseTensors(shapes=self.loose.shapes, where=self.loose.where)

    def _tell_of_models(self) -> None:
        if not self.wants(ModelHeld):
            return
        left_out = self.left_out()
        made = next((held.made for held in self.optimizers if held.stepped), None)
        for model in self.models:
            forgotten = model.forgotten if model in left_out else set()
            if forgotten and self.may_be_meant(model):
                if not any(map(self.holds_another_model, self.optimizers)):
                    self.monitor.note(
                        f"{len(forgotten)} of {len(model.order)} trainable tensors of {model.name} get gradients and "
                        "are in no optimizer; if that is meant, requires_grad_(False) says so and saves their backward "
                        "pass"
                    )
                forgotten = set()
            ordered = [name for name in model.order if name in forgotten] or sorted(forgotten)
            self.tell(ModelHeld(model=model.name, forgotten=ordered, where=made))

    def _tell_of(self, held: OptimizerTensors) -> None:
        cut = held.cut_off if held.reached or self.ends_in is None else held.without_gradient
        of_all = len(cut) == len(held.all)
        where = next((model.where for model in self.models), held.made)
        member, blocks = self._missing_in_each_block(held)
        self.tell(
            TensorsHeld(
                made=held.made,
                tensors=len(held.all),
                foreign=len(held.foreign),
                of_another_model=self.holds_another_model(held),
                **self._replaced(held),
                without_gradient=len(cut),
                called=cut == held.cut_off,
                share_of_elements=held.share_of_elements(held.cut_off),
                left_out=len(held.left_out - held.reached),
                share_left_out=held.share_of_elements(held.left_out - held.reached),
                shown_left_out=self.shown(held.left_out - held.reached),
                shown=self.shown(cut),
                ends_in=self.ends_in if of_all else None,
                ends_at=self.ends_at if of_all else None,
                any_cut_off=any(
                    each.without_gradient & each.called for each in self.optimizers if each.stepped and each.all
                ),
                in_each=member,
                blocks=blocks,
                where=where,
            )
        )
        dead = (held.matrices & held.reached) - held.nonzero
        if held.looks >= GRADIENT_SAMPLES and not self._weighed and dead and not held.foreign:
            self.tell(ZeroGradients(matrices=len(dead), shown=self.shown(dead), where=where))

    def _replaced(self, held: OptimizerTensors) -> dict[str, Any]:
        """What took the place of a part of the model after the optimizer was made."""
        model = next((each for each in self.models if each.held and each.forgotten), None)
        if model is None or not (held.reached and held.foreign):
            return {}
        new = [name for name in model.order if name in model.forgotten]
        parents = {name.rpartition(".")[0].rpartition(".")[2] for name in new} - {""}
        at = self.monitor.locator.assignment(*parents) if len(parents) == 1 else None
        return {"not_held": new, "replaced_at": at}

    def _missing_in_each_block(self, held: OptimizerTensors) -> tuple[str | None, int]:
        """A member that no block of the script's own uses: one that is in a model once may be meant to be left."""
        missing, reached = held.without_gradient & held.called, held.reached
        for model in list(self.called):
            blocks: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
            for name, parameter in model.named_parameters():
                if (found := IN_BLOCK.match(name)) is not None:
                    blocks[found["stack"], found["member"]][found["block"]].append(id(parameter))
            for (stack, member), tensors in blocks.items():
                ids = {each for of_block in tensors.values() for each in of_block}
                others = (each for (of, _), one in blocks.items() if of == stack for each in one.values())
                used = any(not reached.isdisjoint(each) for each in others)
                if len(tensors) >= MIN_BLOCKS and ids <= missing and used:
                    block = type(model.get_submodule(f"{stack}.{next(iter(tensors))}"))
                    code = getattr(block.forward, "__code__", None)
                    if code is not None and self.monitor.locator.is_users_file(code.co_filename):
                        return f"{member} of {stack}.*", len(tensors)
        return None, 0

    def on_combined(self, event: Combined) -> None:
        self._weighed |= event.sign == "*" and any(type(part) in (int, float) and part == 0 for part in event.parts)

    def on_zero_grad(self, event: ZeroGrad) -> None:
        if isinstance(event.of, Optimizer) and event.of in self._of_optimizer:
            self._of_optimizer[event.of].cleared += 1

    def on_step(self, event: Step) -> None:
        held = self._of_optimizer.get(event.optimizer)
        if held is not None:
            held.stepped = self.stepped = True
            held.since_step = 0
            if self.monitor.in_backward:
                held.reached = held.all  # it steps as soon as a gradient is there, and clears it

    def _ids_of_called(self) -> set[int]:
        return {id(p) for module in self.called for p in registered(module)}

    def _ids_of_used(self) -> set[int]:
        """Ids of the tensors of the modules that were called, and of all parts of a module of which no part was seen to
        be called: it may use their weights itself, or be compiled."""
        used: set[int] = set()
        for model in self.called:
            _gather_used(model, self._parts, used)
        return used

    def _optimizer(self, optimizer: Optimizer) -> OptimizerTensors:
        if optimizer not in self._of_optimizer:
            seen = self.monitor.optimizers[optimizer]
            self._of_optimizer[optimizer] = held = OptimizerTensors(seen.made or seen.where)
            self.optimizers.append(held)
        return self._of_optimizer[optimizer]

    def _model(self, model: nn.Module) -> ModelTensors:
        if model not in self._of_model:
            trainable = [name for name, p in model.named_parameters() if p.requires_grad]
            chooses = type(model).parameters is not nn.Module.parameters
            self._of_model[model] = seen = ModelTensors(type(model).__name__, trainable, chooses)
            self.models.append(seen)
        return self._of_model[model]


def _templates(model: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters of layers beside a stack of torch's that has copies of them: the layer it was made with, kept."""
    stacks = [each for each in model.modules() if isinstance(each, (nn.TransformerEncoder, nn.TransformerDecoder))]
    copies = [layer for stack in stacks for layer in stack.layers]
    builds = {_build(layer) for layer in copies}
    for module in model.modules() if copies else ():
        if _build(module) in builds and not any(module is copy for copy in copies):
            yield from module.parameters()


def _gather_used(module: nn.Module, called: Collection[nn.Module], used: set[int]) -> bool:
    """Add the ids of the parameters that a module uses; whether it was called, or any of its parts."""
    parts_called = [_gather_used(part, called, used) for part in module.children()]
    if module not in called:
        return any(parts_called)
    used |= {id(p) for p in (module._parameters.values() if any(parts_called) else registered(module))}
    return True


def _build(module: nn.Module) -> tuple[type, tuple[torch.Size, ...]]:
    return type(module), tuple(p.shape for p in module.parameters())


def _is_of_single_tokens(forward: Forward) -> bool:
    """Whether a model was given sequences of one token, as by a curriculum that begins with the shortest."""
    ids = [each for each in forward.tensors.values() if not each.is_floating_point() and each.dim() == 2]
    return bool(ids) and all(each.shape[1] == 1 for each in ids)


def before_inputs(forwards: Sequence[Forward]) -> set[int]:
    """The ids of the tensors that get gradients through an input of these calls."""
    given = [each for forward in forwards for each in forward.tensors.values() if each.requires_grad]
    return {id(leaf) for each in given for leaf in (each, *leaves(each))}
