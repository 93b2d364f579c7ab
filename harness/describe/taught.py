"""What is taught: which tokens; by which loss function, over how many targets, and what these are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from harness.describe.description import Line
from harness.describe.lines import Section, line, listed, number
from harness.describe.update_losses import UpdateLosses
from harness.findings import count
from harness.watch.events import IGNORED, Backward, BackwardBegins, LossCall
from harness.watch.facts.called_models import Names
from harness.watch.facts.labels_given import Labelled, real_tokens
from harness.watch.facts.losses import mean_loss
from harness.watch.facts.next_tokens import TokenLoss, TokensTaught
from harness.watch.monitor import HELD

MOST_CLASSES = 50
"""Values of targets that are counted one by one: more are tokens."""

MOST_NAMED = 50
"""Classes of a loss whose targets are named by class: of more they are tokens."""

COMPARED_PASSES = 32
"""Backward passes whose loss is compared with the mean over its targets."""

SHARE_RTOL = 1e-3
"""How near two shares of a mean loss must be to count as the same."""

LOOKED_AT_ONLY = ", in the updates that were looked at"

DEFAULTS = {"reduction": "mean", "ignore_index": IGNORED, "label_smoothing": 0.0}

SHOWN_OPTIONS = ("reduction", "ignore_index", "label_smoothing", "beta", "delta")


@dataclass(eq=False)
class _Loss:
    """Calls of one loss function in one line."""

    first: LossCall | None = None
    function: str = ""
    where: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    by_hand: bool = False
    by_row: bool = False
    """Whether it gives a loss for each row, or was written by hand: its weight is not known then."""
    shape: str = ""
    width: int = 0
    """Classes of the input; 0 where it is not one of classes."""
    targets: str = ""
    calls: int = 0
    more: bool = False
    """Whether a backward pass may have been of more calls than are known."""
    counted: int = 0
    ignored: int = 0
    weightless: Any = 0
    """Number of counted targets whose loss has a weight of 0 in what was differentiated."""
    classes: Counter[float] = field(default_factory=Counter)
    many: bool = False
    """Whether there are more values of targets than are counted."""
    weights: list[float] = field(default_factory=list)
    """Weights of the first calls in what was differentiated; none for a call that is not in it."""


class Taught(Section):
    """Which tokens of its rows a language model is taught."""

    def begin(self) -> None:
        self._forwards: set[int] = set()
        """Numbers of the forwards since the latest backward pass that were counted."""
        self._rows = self._tokens = self._padding = self._taught = 0
        self._without = self._ends = self._begins = 0
        self._all = True
        """Whether every backward pass was looked at."""
        self._where: str | None = None

    def on_labelled(self, fact: Labelled) -> None:
        self._count(fact.forward.number, fact.where, fact.counted, fact.real)

    def on_tokens_taught(self, fact: TokensTaught) -> None:
        for loss in fact.losses:
            if loss.time and loss.ahead:
                value = None if loss.call is None else loss.call.value
                if value is not None and value.requires_grad and value.numel() == _places(loss):
                    value.register_hook(self.monitor.guarded(self, partial(self._count_weighed, loss)))  # type: ignore[no-untyped-call]
                else:
                    self._count_taught(loss)

    def _count_weighed(self, loss: TokenLoss, gradient: torch.Tensor) -> None:
        self._count_taught(loss.weighed(gradient))

    def _count_taught(self, loss: TokenLoss) -> None:
        self._count(loss.forward.number, loss.where, loss.is_target, real_tokens(loss.forward, loss.tokens))

    def on_backward(self, event: Backward) -> None:
        self._forwards.clear()
        self._all &= event.at.sampled

    def _count(self, forward: int, where: str | None, counted: torch.Tensor, real: torch.Tensor) -> None:
        if forward in self._forwards:
            return
        self._forwards.add(forward)
        self._where = self._where or where
        counted = counted & real
        self._rows += len(real)
        self._tokens += real.numel()
        self._padding += int((~real).sum())
        self._taught += int(counted.sum())
        self._without += int((~counted.any(1)).sum())
        places = torch.arange(real.shape[1], device=real.device).expand_as(real)
        last = places.masked_fill(~real, -1).max(1).values.clamp(min=0)
        first = places.masked_fill(~real, real.shape[1]).min(1).values.clamp(max=real.shape[1] - 2)
        self._ends += int(counted.gather(1, last[:, None]).sum())
        self._begins += int(counted.gather(1, first[:, None] + 1).sum())

    def lines(self) -> Iterator[Line]:
        if not self._rows:
            return
        real = self._tokens - self._padding
        padding = f" and {self._padding / self._tokens:.0%} padding" if self._padding else ""
        text = f"{count(self._rows, 'row')} of {count(real, 'token')}{padding}"
        text += f"; {self._taught / max(1, real):.0%} of the tokens are taught"
        text += f", the last token of a row in {self._ends:,} of {count(self._rows, 'row')}"
        text += f"; {count(self._without, 'row')} without a token that is taught" if self._without else ""
        text += "" if self._all else LOOKED_AT_ONLY
        facts = {
            "rows": self._rows,
            "tokens": real,
            "padding": self._padding,
            "taught": self._taught,
            "rows_without": self._without,
            "last_token": self._ends,
            "second_token": self._begins,
        }
        yield line("taught", text, facts, self._where)


class Losses(Section):
    """What was differentiated, update by update."""

    def begin(self) -> None:
        self._losses: dict[tuple[str, str | None], _Loss] = {}
        self._updates = self.monitor.fact(UpdateLosses)
        self._unknown = self._not_finite = 0
        self._all = True
        """Whether every backward pass was looked at: losses that are written by hand are read in those alone."""
        self._of_models: dict[str, None] = {}
        """Models that computed the loss themselves, by none of the functions that are known."""
        self._shares: list[float] = []
        self._values: list[float] = []
        """The first ones."""
        self._latest: torch.Tensor | None = None
        """The latest, of which the number is asked at the end alone."""
        self._backwards = 0
        self._where: str | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._backwards += 1
        self._all &= event.at.sampled
        more = len(event.losses) >= HELD
        self._where = self._where or event.where
        calls = [each for each in event.losses if each.value.requires_grad or each.by_hand]
        for call in calls:
            self._keep(call, event.scale, more=more)
        if self._backwards <= COMPARED_PASSES and event.root.numel() == 1:
            value = float(event.root.detach()) / event.scale
            self._values.append(value)
            self._not_finite += not math.isfinite(value)
            self._unknown += not calls
            if not calls:
                own = [type(each.model).__name__ for each in event.forwards if each.loss is not None]
                self._of_models |= dict.fromkeys(own)
            mean = mean_loss(calls[0]) if len(calls) == 1 else None
            if mean:
                self._shares.append(value / mean)
        elif event.root.numel() == 1:
            self._latest = event.root.detach() / event.scale

    def _keep(self, call: LossCall, scale: float, *, more: bool) -> None:
        seen = self._losses.setdefault((call.function, call.where), _Loss())
        if not seen.calls:
            seen.function, seen.where = call.function + (" written by hand" * call.by_hand), call.where
            seen.options = {n: call.options[n] for n in SHOWN_OPTIONS if call.options.get(n) is not None}
            seen.options |= {n: True for n in ("weight", "pos_weight") if call.options.get(n) is not None}
            classes = call.input.shape[1] if call.of_classes else None
            seen.width = classes or 0
            seen.shape = f"{classes} classes" if classes else "x".join(map(str, call.input.shape[1:])) or "one number"
            seen.by_hand = call.by_hand
            seen.by_row = call.value.dim() > 0 or call.by_hand
            seen.targets = str(call.target.dtype).removeprefix("torch.")
        seen.calls += 1
        seen.more |= more
        if seen.calls <= COMPARED_PASSES and call.value.requires_grad and call.value.dim() == 0:
            weigh = self.monitor.guarded(self, lambda gradient: seen.weights.append(float(gradient) / scale))
            call.value.register_hook(weigh)  # type: ignore[no-untyped-call]
        target, counted = call.target.detach(), call.counted
        seen.counted += int(counted.sum())
        seen.ignored += int((~counted).sum())
        if call.value.requires_grad and call.value.shape == counted.shape and call.value.dim():
            call.value.register_hook(self.monitor.guarded(self, partial(_count_weightless, seen, counted)))  # type: ignore[no-untyped-call]
        if not seen.many:
            values = target[counted].flatten()
            values, counts = torch.unique(values, return_counts=True)
            seen.classes.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            seen.many = len(seen.classes) > MOST_CLASSES

    def lines(self) -> Iterator[Line]:
        names = Names()
        for key, seen in self._losses.items():
            yield self._line(seen, names.of(key, seen.function.replace(" ", "_")))
        if self._unknown:
            text = "what is differentiated comes from no loss function that is known"
            if self._of_models:
                text = f"computed by {' and '.join(self._of_models)} itself, in a way that is not known"
            if self._unknown == min(self._backwards, COMPARED_PASSES):
                yield line("loss", text, {"unknown": True}, self._where)
        if share := self._share():
            yield line("loss", share[0], {"share_of_the_mean": share[1]}, self._where)
        if self._values:
            first, last = self._values[0], self._last()
            clause = f"{number(first)} at first, {number(last)} at the end"
            if share and share[1] and abs(share[1] - 1) > SHARE_RTOL:
                clause += f"; as means over the targets {number(first / share[1])} and {number(last / share[1])}"
            clause += f"; not a finite number in {self._not_finite} of the first updates" if self._not_finite else ""
            yield line("loss", clause, {"not_finite": self._not_finite})

    def numbers(self) -> dict[str, list[float]]:
        return {"loss": [*self._updates.losses, self._last()]} if self._values else {}

    def _last(self) -> float:
        return self._values[-1] if self._latest is None else float(self._latest)

    def _line(self, seen: _Loss, name: str) -> Line:
        facts: dict[str, Any] = {"calls": seen.calls, "input": seen.shape, "targets": seen.targets, **seen.options}
        if seen.weights or (seen.calls and not seen.by_row):
            same = bool(seen.weights) and max(seen.weights) - min(seen.weights) <= SHARE_RTOL * abs(seen.weights[0])
            facts["weight"] = float(f"{seen.weights[0]:.4g}") if same else "varies" if seen.weights else None
            facts["differentiated"] = len(seen.weights)
        facts["counted"] = seen.counted
        facts["ignored"] = seen.ignored
        weightless = int(seen.weightless)
        text = f"{seen.function} of {seen.shape}"
        options = {name: value for name, value in seen.options.items() if DEFAULTS.get(name) != value}
        if options:
            text += f" ({', '.join(f'{n} {value}' if value is not True else n for n, value in options.items())})"
        text += f", {'at least ' * seen.more}{count(seen.counted, 'target')}"
        text += LOOKED_AT_ONLY if seen.by_hand and not self._all else ""
        weight = facts.get("weight", 1.0)
        if weight != 1.0:
            words = {None: "never differentiated", "varies": "with a weight that varies"}
            text += f" ({words[weight] if weight in words else f'the loss multiplied by {number(weight)}'})"
        if seen.ignored:
            text += f", {seen.ignored:,} ignored ({seen.ignored / (seen.counted + seen.ignored):.0%})"
        if weightless:
            facts["weightless"] = weightless
            text += f", {weightless:,} of them with a weight of 0"
        if seen.targets.startswith(("int", "uint", "bool")) and not seen.many and seen.classes:
            facts["classes"] = {str(int(each)): seen.classes[each] for each in sorted(seen.classes)}
            of_class = (f"{value} of class {key}" for key, value in facts["classes"].items())
            text += f": {listed(of_class, most=6)}" if seen.width <= MOST_NAMED else ""
        elif seen.targets.startswith("float") and not seen.many and len(seen.classes) <= 2:
            facts["classes"] = {f"{each:g}": seen.classes[each] for each in sorted(seen.classes)}
            text += ": " + listed(f"{value} of {key}" for key, value in facts["classes"].items())
        return line("loss", text, facts, seen.where, of=name)

    def _share(self) -> tuple[str, float] | None:
        """What is differentiated, beside the mean over the targets, where it is the same part of it each time."""
        if len(self._shares) < 2 or len(self._shares) < min(self._backwards, COMPARED_PASSES):
            return None
        share = self._shares[0]
        if any(abs(each - share) > SHARE_RTOL * abs(share) for each in self._shares):
            return None
        if abs(share - 1) <= SHARE_RTOL:
            return "what is differentiated is the mean over the targets", 1.0
        shown = f"1/{1 / share:.4g}" if 0 < share < 1 else f"{share:.4g} times"
        return f"what is differentiated is {shown} {'of ' if '/' in shown else ''}the mean over the targets", share


def _count_weightless(seen: _Loss, counted: torch.Tensor, gradient: torch.Tensor) -> None:
    seen.weightless = seen.weightless + (counted & (gradient == 0)).sum()


def _places(loss: TokenLoss) -> int | None:
    """The targets of a loss of each place; None of one that is a sum or a mean."""
    return loss.call.target.numel() if loss.call is not None and loss.call.value.dim() else None
