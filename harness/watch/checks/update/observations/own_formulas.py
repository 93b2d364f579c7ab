"""Own formulas: which optimizer a script has written itself, by what its first updates made of their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from harness.watch.events import Fact, Step, StepBegins
from harness.watch.monitor import ManualUpdate
from harness.watch.recogniser import Recogniser

FIRST_UPDATES = 6
"""Updates from the first one on that are compared. By reasoning, how a formula corrects its moments shows at once."""

FEWEST_ELEMENTS = 4

COMPARED_ELEMENTS = 4096
"""Elements of a tensor that are looked at."""

BETAS = tuple((first, second) for first in (0.9, 0.95, 0.8, 0.5) for second in (0.999, 0.99, 0.98, 0.95, 0.9))
"""Decay rates of the two moments that are tried: those of papers and libraries."""

MAX_UNEXPLAINED = 0.02
"""Largest part of a change that a formula leaves unexplained, and largest difference between the learning rates that it
needs in two updates. The correction of the first update's moments makes a factor of 3 to 30."""

CORRECTIONS = {
    "none": "the moments are not corrected for their bias",
    "first": "the second moment is not corrected for its bias",
    "second": "the first moment is not corrected for its bias",
    "exchanged": "the second moment is corrected by the first one's decay rate",
}


class OwnAdamUsed(Fact):
    """The first updates of a script without an optimizer of torch are those of Adam. ``where`` is the latest."""

    needs = "update by a formula of the script's own that is Adam's"
    in_windows = "all"  # it is made only where the first updates are seen
    betas: tuple[float, float]
    fault: str | None = None
    """What is wrong with the correction of its moments."""
    named: bool = False
    """Whether what makes it is called after Adam."""


@dataclass(eq=False)
class _Followed:
    """A tensor's gradients and changes, (elements,) in float64."""

    parameter: torch.Tensor
    gradients: list[torch.Tensor] = field(default_factory=list)
    changes: list[torch.Tensor] = field(default_factory=list)
    before: torch.Tensor | None = None


class OwnFormulas(Recogniser):
    makes = (OwnAdamUsed,)

    def begin(self) -> None:
        self._followed: _Followed | None = None
        """The smallest tensor that is large enough, until its first updates have been compared."""
        self._named = False
        self._over = self.monitor.options.before > 0

    def on_step_begins(self, event: StepBegins) -> None:
        if self._over or not isinstance(event.optimizer, ManualUpdate):
            return
        if event.number == 1:
            held = [p for p in event.optimizer.param_groups[0]["params"] if p.numel() >= FEWEST_ELEMENTS]
            self._followed = _Followed(min(held, key=lambda p: p.numel())) if held else None
            self._named = self._is_called_adam()
        if self._followed is None or self._followed.parameter.grad is None:
            self._over = True
            return
        self._followed.gradients.append(_values(self._followed.parameter.grad))
        self._followed.before = _values(self._followed.parameter)

    def _is_called_adam(self) -> bool:
        names = (type(variables.get("self")).__name__ for variables in self.monitor.locator.variables(2))
        return any("adam" in name.lower() and "bert" not in name.lower() for name in names)

    def on_step(self, event: Step) -> None:
        followed = self._followed
        if self._over or followed is None or followed.before is None or not isinstance(event.optimizer, ManualUpdate):
            return
        followed.changes.append(_values(followed.parameter) - followed.before)
        if event.number == FIRST_UPDATES:
            self._over, self._followed = True, None
            for betas in BETAS:
                fits = [name for name, directions in _adams(followed.gradients, betas) if _fit(followed, directions)]
                if fits:
                    fault = None if "both" in fits else CORRECTIONS[fits[0]]
                    self.tell(OwnAdamUsed(betas=betas, fault=fault, named=self._named, where=event.where))
                    return


def _values(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().flatten()[:COMPARED_ELEMENTS].double().cpu().clone()


def _adams(gradients: Sequence[torch.Tensor], betas: tuple[float, float]) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """The directions of Adam's updates, by which of its moments are corrected."""
    first = second = torch.zeros_like(gradients[0])
    moments = []
    for gradient in gradients:
        first = betas[0] * first + (1 - betas[0]) * gradient
        second = betas[1] * second + (1 - betas[1]) * gradient.square()
        moments.append((first, second))
    exponents = {
        "both": (betas[0], betas[1]),
        "none": (0.0, 0.0),
        "first": (betas[0], 0.0),
        "second": (0.0, betas[1]),
        "exchanged": (betas[0], betas[0]),
    }
    for name, (one, other) in exponents.items():
        yield (
            name,
            [
                (first / (1 - one**step)) / ((second / (1 - other**step)).sqrt() + 1e-8)
                for step, (first, second) in enumerate(moments, start=1)
            ],
        )


def _fit(followed: _Followed, directions: Sequence[torch.Tensor]) -> bool:
    """Whether all changes are these directions, multiplied by one learning rate."""
    rates = []
    for change, direction in zip(followed.changes, directions, strict=True):
        along = torch.dot(direction, direction)
        if not along > 0 or not change.any():
            return False
        rate = torch.dot(change, direction) / along
        if not (change - rate * direction).norm() <= MAX_UNEXPLAINED * change.norm():
            return False
        rates.append(float(rate))
    return max(rates) < 0 and max(rates) - min(rates) <= MAX_UNEXPLAINED * abs(min(rates))
