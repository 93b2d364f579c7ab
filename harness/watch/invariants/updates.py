"""Reference update and effect: each step changes the parameters as the optimizer's formula says, and only those."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from harness.watch.events_old import Backward, Forward, Loaded, Step
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import held_by

TENSORS = 4
"""So many tensors are looked at in a sampled update, other ones each time."""

NEVER = 4
"""So many backward passes without an update are no accident."""

LOST = 0.25
"""Share of the elements whose change may be rounded away in low precision."""


@dataclass
class Before:
    """A tensor before an update."""

    parameter: torch.Tensor
    group: dict[str, Any]
    gradient: torch.Tensor
    value: torch.Tensor
    state: dict[str, Any]


class Updates(Invariant):
    checks = (
        Statement(
            "update::as-the-optimizer-defines", "An update is what the optimizer's formula makes of its gradients."
        ),
        Statement("update::not-rounded-away", "An update is not lost to the rounding of the parameters' precision."),
        Statement("update::descends", "The optimizer makes the loss smaller, not larger."),
        Statement("effect::parameters-change", "A parameter with a gradient and a learning rate changes."),
        Statement("effect::frozen-stay", "What is frozen does not change, and what is meant to be frozen is."),
        Statement("effect::optimizer-kept", "The optimizer and its moments last for the whole training."),
        Statement(
            "effect::only-the-optimizer-writes",
            "Between two updates nothing but the optimizer changes the parameters.",
            severity="warning",
        ),
        Statement("effect::updates-are-kept", "What an update changed is not set back to the beginning."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.before: list[Before] = []
        self.frozen: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.turn = 0
        self.backwards = self.since = 0
        self.asleep: WeakKeyDictionary[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]] = WeakKeyDictionary()
        """Of each trained model two frozen tensors, as they were."""
        self.steps: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        self.start: WeakKeyDictionary[Optimizer, tuple[torch.Tensor, torch.Tensor]] = WeakKeyDictionary()
        self.moved: WeakKeyDictionary[Optimizer, bool] = WeakKeyDictionary()
        """Whether that tensor has been another since."""
        self.left: WeakKeyDictionary[Optimizer, list[tuple[torch.Tensor, torch.Tensor]]] = WeakKeyDictionary()
        """Tensors as the latest update left them."""
        self.made: list[tuple[Any, list[ref[torch.Tensor]], dict[str, Any]]] = []
        self.lost: list[float] = []
        self.looked_at: set[int] = set()

    def backward(self, event: Backward) -> None:
        self.backwards += 1
        self.since += 1
        if event.inside_step:
            self.before = []  # a closure's step has gradients of its own
        if event.inside_step or not self.observer.is_sampled():
            return
        for forward in event.forwards:
            if forward.number in event.reached:
                self._frozen_written(forward, event)

    def ends(self, _: None) -> None:
        made = self.observer.optimizers_made
        if self.backwards >= NEVER and not self.observer.made and made:
            self.found(
                "effect::parameters-change",
                expected="a call of optimizer.step() for each update",
                observed=f"{self.backwards} backward passes and not one optimizer step",
                hint="Call optimizer.step() after the backward pass; where micro-batches are added up, for each full "
                "window.",
                where=made[-1],
                update=1,
            )

    def _frozen_written(self, forward: Forward, event: Backward) -> None:
        """Frozen parameters of a model that is trained stay as they are, whoever might write to them."""
        before = self.asleep.get(forward.model)
        if before is None:
            frozen = [p for p in forward.model.parameters() if not p.requires_grad and p.numel()]
            frozen = sorted(frozen, key=lambda p: p.numel())[:: max(1, len(frozen) // 2)][:2]
            self.asleep[forward.model] = [(p, p.detach().clone()) for p in frozen]
            return
        still = [(p, value) for p, value in before if not p.requires_grad]
        if any(not torch.equal(p, value) for p, value in still):
            self.found(
                "effect::frozen-stay",
                expected="frozen parameters that stay as they are",
                observed=f"{type(forward.model).__name__} has frozen ones that were changed between two updates",
                hint="Leave frozen parameters out of what is written by hand.",
                where=event.where,
                update=self.observer.update,
            )
        self.asleep[forward.model] = [(p, p.detach().clone()) for p, _ in still]

    def forward(self, event: Forward) -> None:
        """Freezing that is misspelt sets an attribute that nothing reads."""
        if id(event.model) in self.looked_at:
            return
        self.looked_at.add(id(event.model))
        for name, module in event.model.named_modules():
            if vars(module).get("requires_grad") is False and any(p.requires_grad for p in module.parameters()):
                self._not_frozen(f"{name or 'the model'}.requires_grad = False", event.where)
                return
        for name, parameter in event.model.named_parameters():
            wrong = difflib.get_close_matches("requires_grad", list(vars(parameter)), n=1, cutoff=0.8)
            if wrong and parameter.requires_grad:
                self._not_frozen(f"{name}.{wrong[0]} = {vars(parameter)[wrong[0]]}", event.where)
                return

    def _not_frozen(self, what: str, where: str | None) -> None:
        self.found(
            "effect::frozen-stay",
            expected="requires_grad_(False) on the module, or requires_grad = False on each parameter",
            observed=f"{what} was set, which freezes nothing",
            hint="Write module.requires_grad_(False).",
            where=where,
            update=self.observer.update,
        )

    def step_begins(self, event: Step) -> None:
        self.before, self.frozen = [], []
        optimizer = event.optimizer
        if event.number == 1:
            self._made_again(optimizer, event)
        if not event.sampled:
            return
        pairs = [(p, group) for group in optimizer.param_groups for p in group["params"]]
        trainable = [(p, group) for p, group in pairs if p.requires_grad and p.grad is not None]
        if pairs and not any(p.requires_grad for p, _ in pairs):
            self.found(
                "effect::parameters-change",
                expected="an optimizer with parameters that are trained",
                observed="all that it holds are frozen (requires_grad is False)",
                hint="Give it the parameters that are trained, after freezing the others.",
                where=self.observer.optimizers[optimizer].made or event.where,
                update=event.update,
            )
        if any(group.get("maximize") for group in optimizer.param_groups):
            self.found(
                "update::descends",
                expected="maximize=False, because a loss is differentiated",
                observed="the optimizer climbs: maximize=True",
                hint="Leave maximize out.",
                where=self.observer.optimizers[optimizer].made or event.where,
                update=event.update,
            )
        self._state_kept(optimizer, trainable, event)
        chosen = [trainable[(self.turn + i) % len(trainable)] for i in range(min(TENSORS, len(trainable)))]
        self.turn += TENSORS
        for parameter, group in chosen:
            if group.get("lr") is not None and not parameter.grad.is_sparse:
                self.before.append(
                    Before(
                        parameter,
                        group,
                        parameter.grad.detach().clone(),
                        parameter.detach().clone(),
                        _state(optimizer, parameter),
                    )
                )
        stale = [p for p, _ in pairs if not p.requires_grad and p.grad is not None]
        self.frozen = [(p, p.detach().clone()) for p in stale[:TENSORS]]
        self._kept(optimizer, trainable, event)
        self._written(optimizer, event)

    def step(self, event: Step) -> None:
        changed = [p for p, before in self.frozen if not torch.equal(p, before)]
        if changed:
            self.found(
                "effect::frozen-stay",
                expected="frozen parameters that stay as they are",
                observed=f"the optimizer changed {len(changed)} that were frozen while they still had a gradient",
                hint="Clear its gradient (p.grad = None) when you freeze a parameter, or take it out of the optimizer.",
                where=event.where,
                update=event.update,
            )
        if self.before:
            self._effect(event)
            self._reference(event)
        self.before, self.frozen = [], []
        self.since = 0
        parameter, start = self.start.get(event.optimizer, (None, None))
        if parameter is not None and start is not None and not torch.equal(parameter, start):
            self.moved[event.optimizer] = True
        followed = [p for p, _ in self.left.get(event.optimizer, ())] or _followed(event.optimizer)
        self.left[event.optimizer] = [(p, p.detach().clone()) for p in followed]

    def loaded(self, event: Loaded) -> None:
        if isinstance(event.into, Optimizer):
            self.steps.pop(event.into, None)
        self.start.clear()
        self.asleep.clear()
        self.left.clear()

    def _written(self, optimizer: Optimizer, event: Step) -> None:
        if self.since != 1:
            return  # several backward passes may go through weights that are moved for a while
        for parameter, left in self.left.get(optimizer, ()):
            apart = (parameter.detach() - left).abs().max().item()
            if apart > 1e-5 * left.abs().max().item() + 1e-7:
                self.found(
                    "effect::only-the-optimizer-writes",
                    expected="parameters as the update before left them",
                    observed=f"a tensor of shape {tuple(left.shape)} was changed by up to {apart:.2g} since",
                    hint="Look at what writes to the parameters: a decay by hand, averaged weights that are not taken "
                    "back, shared memory. Right for a constraint on the weights, such as clipping them.",
                    where=event.where,
                    update=event.update,
                )

    def _effect(self, event: Step) -> None:
        for each in self.before:
            lr = float(each.group["lr"])
            gradient, value = each.gradient, each.value
            if not gradient.any() or not gradient.isfinite().all():
                continue
            if lr <= 4 * torch.finfo(value.dtype).eps * value.abs().max().item():
                continue
            expected = _expected(event.optimizer, each)
            if expected is None and "adam" not in type(event.optimizer).__name__.lower():
                continue
            if expected is not None and torch.equal(expected.to(value.dtype), value):
                continue
            if torch.equal(each.parameter, value):
                self.found(
                    "effect::parameters-change",
                    expected=f"a change, with a gradient and a learning rate of {lr:.3g}",
                    observed=f"a tensor of shape {tuple(value.shape)} is the same after the step",
                    hint="Look at what replaces or wraps optimizer.step(), and at what sets the parameters back.",
                    where=event.where,
                    update=event.update,
                )

    def _reference(self, event: Step) -> None:
        wrong, seen, elements, lost = 0, 0, 0, 0.0
        for each in self.before:
            expected = _expected(event.optimizer, each)
            if expected is None or not expected.isfinite().all():
                continue
            seen += 1
            change = expected - each.value.double()
            rounding = 4 * torch.finfo(each.value.dtype).eps * each.value.double().abs()
            off = (each.parameter.detach().double() - expected).abs()
            allowed = 1e-2 * change.abs().max() + rounding + (change.abs() if each.value.element_size() < 4 else 0)
            wrong += bool((off > allowed).any())
            if each.value.element_size() < 4:
                meant = change != 0
                elements += int(meant.sum())
                lost += float((meant & (each.parameter.detach() == each.value)).sum())
        if elements and event.number > 1:
            self.lost.append(lost / elements)
        if len(self.lost) >= 2 and sum(self.lost) / len(self.lost) > LOST:
            self.found(
                "update::not-rounded-away",
                expected="parameters in float32, to which small changes can be added",
                observed=f"{sum(self.lost) / len(self.lost):.0%} of the elements are the same after an update, "
                f"because {str(self.before[0].value.dtype).removeprefix('torch.')} cannot hold the change",
                hint="Keep the weights in float32 (dtype=torch.float32) and use autocast for the computation.",
                where=event.where,
                update=event.update,
            )
        elif seen and wrong == seen:
            self.found(
                "update::as-the-optimizer-defines",
                expected=f"the update of {type(event.optimizer).__name__} with the values in its parameter groups",
                observed=f"all {seen} tensors that were looked at came out otherwise",
                hint="Look at what replaces or wraps optimizer.step(), and what changes gradients or state within it.",
                where=event.where,
                update=event.update,
            )

    def _made_again(self, optimizer: Optimizer, event: Step) -> None:
        seen = self.observer.optimizers[optimizer]
        held = held_by(optimizer)
        defaults = {"class": type(optimizer)} | {k: v for k, v in optimizer.defaults.items() if _plain(v)}
        times = 0
        for stack, others, values in self.made:
            same = len(others) == len(held) and all(ref() is p for ref, p in zip(others, held, strict=True))
            times += seen.stack is not None and stack == seen.stack and same
            # Another learning rate may be another stage of the training; a third one is a loop's.
            if times and (values == defaults or times >= 2):
                self.found(
                    "effect::optimizer-kept",
                    expected="one optimizer for the whole training",
                    observed="another one like it is made over the same parameters, at the same line: "
                    "the moments are lost",
                    hint="Make the optimizer once, before the loop.",
                    where=seen.made,
                    update=event.update,
                )
        if seen.stack is not None:
            self.made.append((seen.stack, [ref(p) for p in held], defaults))

    def _state_kept(self, optimizer: Optimizer, trainable: list[Any], event: Step) -> None:
        counts = [float(optimizer.state[p]["step"]) for p, _ in trainable if "step" in optimizer.state.get(p, {})]
        now = max(counts, default=0.0)
        if now < self.steps.get(optimizer, 0.0):
            self.found(
                "effect::optimizer-kept",
                expected=f"moments of {self.steps[optimizer]:.0f} updates",
                observed="the optimizer's state was emptied in the middle of the training",
                hint="Keep optimizer.state; load_state_dict restores it.",
                where=event.where,
                update=event.update,
            )
        self.steps[optimizer] = now

    def _kept(self, optimizer: Optimizer, trainable: list[Any], event: Step) -> None:
        if optimizer not in self.start:
            if trainable and event.number == 1:
                smallest = min((p for p, _ in trainable), key=lambda p: p.numel())
                self.start[optimizer] = (smallest, smallest.detach().clone())
            return
        parameter, start = self.start[optimizer]
        if torch.equal(parameter, start) and optimizer in self.moved and any(p is parameter for p, _ in trainable):
            lr = max(float(group.get("lr") or 0.0) for group in optimizer.param_groups)
            if (
                lr > 4 * torch.finfo(start.dtype).eps * max(1.0, start.abs().max().item())
                and parameter.grad is not None
                and parameter.grad.any()
            ):
                self.found(
                    "effect::updates-are-kept",
                    expected="parameters as the updates before left them",
                    observed="a tensor is what it was before the first update",
                    hint="Look at what writes to the parameters between updates: reloading a checkpoint, an average "
                    "that is copied back, an initialisation that runs again.",
                    where=event.where,
                    update=event.update,
                )


def _followed(optimizer: Optimizer) -> list[torch.Tensor]:
    """Two small trainable tensors, one of them a matrix if there is one."""
    trainable = [p for p in held_by(optimizer) if p.requires_grad]
    small = sorted(trainable, key=lambda p: p.numel())
    return small[:1] + [p for p in small if p.dim() > 1][:1]


def _plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, tuple, type(None)))


def _state(optimizer: Optimizer, parameter: torch.Tensor) -> dict[str, Any]:
    state = optimizer.state.get(parameter, {})
    return {name: value.clone() if torch.is_tensor(value) else value for name, value in state.items()}


def _expected(optimizer: Optimizer, before: Before) -> torch.Tensor | None:
    """The parameter after the step by the formula of the paper, in float64; None for other optimizers.

    AdamW: Loshchilov and Hutter 2019, algorithm 2; Adam: Kingma and Ba 2015, algorithm 1; SGD as torch documents it.
    """
    g, group = before.gradient.double(), before.group
    value, lr = before.value.double(), float(group["lr"])
    decay = float(group.get("weight_decay", 0.0))
    if group.get("maximize"):
        return None
    if isinstance(optimizer, (Adam, AdamW)):
        if group.get("amsgrad") or g.is_complex():
            return None
        beta1, beta2 = (float(beta) for beta in group["betas"])
        t = float(before.state.get("step", 0)) + 1
        if isinstance(optimizer, AdamW) or group.get("decoupled_weight_decay"):
            value = value * (1 - lr * decay)
        else:
            g = g + decay * value
        zero = torch.zeros_like(value)
        m = beta1 * before.state.get("exp_avg", zero).double() + (1 - beta1) * g
        v = beta2 * before.state.get("exp_avg_sq", zero).double() + (1 - beta2) * g * g
        denominator: torch.Tensor = v.sqrt() / math.sqrt(1 - beta2**t) + float(group["eps"])
        after: torch.Tensor = value - lr * (m / (1 - beta1**t)) / denominator
        return after
    if type(optimizer) is SGD:
        momentum = float(group.get("momentum", 0.0))
        g = g + decay * value
        if momentum:
            buffer = before.state.get("momentum_buffer")
            m = g if buffer is None else momentum * buffer.double() + (1 - float(group["dampening"])) * g
            g = g + momentum * m if group.get("nesterov") else m
        return value - lr * g
    return None
