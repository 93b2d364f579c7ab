from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from weakref import ReferenceType, ref

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness.torch_objects import held_by_any
from harness.watch.check import Check
from harness.watch.events import Backward, BackwardBegins, Forward, InnerForward
from harness.watch.facts.copies import Copies
from harness.watch.facts.modes import Modes
from harness.watch.monitor import HELD, Monitor

MIN_UPDATES = 4
"""Updates from which on it is no accident. Neither half nor double of it changes a verdict of the corpus."""


@dataclass(frozen=True)
class _Answer:
    model: ReferenceType[nn.Module]
    shape: torch.Size
    gradients: bool
    where: str | None


class TeacherInTrainMode(Check):
    """A teacher that is not trained is in train mode: its dropout or batch normalisation makes its answers noisy.

    ## Why is this a bug?
    A teacher's output is the target of its student. In train mode, dropout drops different parts of it each time, and
    batch normalisation uses each batch's own moments and writes them into the teacher. `student.train()` reaches a
    teacher that is a part of the same module.

    ## What to do
    Call `teacher.eval()` after every call of `train()` that reaches it; override `train()` where it is a submodule.

    ## When it is right
    A teacher with the student's own architecture, such as the average in mean teacher or BYOL, may be in train mode on
    purpose and is not reported. Neither is a network that an optimizer trains, one with a different kind of output from
    the trained model's, or one without dropout and batch normalisation.
    """

    status = "new"
    needs = "teacher beside the model that is trained"
    in_windows = "first"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.modes, self.copies = monitor.fact(Modes), monitor.fact(Copies)
        self.answers: list[_Answer] = []
        """Since the latest backward pass."""
        self.updates: Counter[int] = Counter()
        """In which a teacher was in train mode, by its number."""

    def on_forward(self, event: Forward) -> None:
        if event.logits is not None and self.monitor.is_sampled():
            answer = _Answer(ref(event.model), event.logits.shape, event.logits.requires_grad, event.where)
            self.answers = [*self.answers[1 - HELD :], answer]

    def on_inner_forward(self, event: InnerForward) -> None:
        self.on_forward(event)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        taught = {each.shape for each in self.answers if each.gradients}
        teachers = {each.model: each.where for each in self.answers if not each.gradients and each.shape in taught}
        if not teachers or event.inside_step:
            return
        held = held_by_any(self.monitor.optimizers)
        copies = {id(each.copy()) for each in self.copies.all}
        for reference, where in teachers.items():
            model = reference()
            mine = set() if model is None else {id(p) for p in model.parameters()}
            if model is not None and mine and not mine & held and not mine & copies:
                self._judge(model, where)

    def on_backward(self, event: Backward) -> None:
        self.answers = []

    def _judge(self, teacher: nn.Module, where: str | None) -> None:
        self.looked = True
        active = [module for module in self.modes.sensitive(teacher) if module.training]
        number = self.monitor.number_of(teacher)
        self.updates[number] += bool(active)
        if active and self.updates[number] == MIN_UPDATES:
            norms = sum(isinstance(module, _BatchNorm) for module in active)
            what = [f"batch normalisation in {norms} places"] * bool(norms)
            what += [f"dropout in {len(active) - norms} places"] * (len(active) > norms)
            self.found(
                expected="a teacher in eval mode",
                observed=f"{type(teacher).__name__}, which no optimizer holds and whose answers have no graph, is "
                f"in train mode: {' and '.join(what)}",
                where=where,
                update=self.monitor.update,
            )
