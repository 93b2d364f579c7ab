"""What the stages costs and launch measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Returns = Literal["a loss", "nothing", "an error", "no finite number"]


@dataclass
class Costs:
    """What was measured, by the way in which it was done."""

    corpus: int = 0
    """The bytes of the corpus whose memory was measured."""
    resident: dict[str, int] = field(default_factory=dict)
    """Growth of the largest resident memory of a process, in bytes: "mapped" and "in memory"."""
    kept: dict[str, int] = field(default_factory=dict)
    """The bytes that a forward pass keeps for a backward pass: "with gradients" and "no_grad"."""
    graphs: dict[str, list[int]] = field(default_factory=dict)
    """How many graphs were compiled after each batch: "one width" and "own widths"."""
    returned: dict[tuple[str, str], Returns] = field(default_factory=dict)
    """What small models return that are given labels, by architecture and task."""
    varied: dict[str, float] = field(default_factory=dict)
    """How far short trainings are apart that differ in one seed, of "nothing", "head", "order" or "dropout"."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why something was not measured, by the field."""


@dataclass(frozen=True)
class Launched:
    """How one start ended."""

    status: int | None
    """The exit status; None where it hung."""
    says: str = ""
    """The end of what it printed, for people."""
    counted: Mapping[str, float] | None = None
    """What train.py told last: processes, updates, the learning rate at the end, accuracy and F1."""
    warned: bool = False
    """Whether ``accelerate launch`` said that it took defaults, as it does without a configuration."""
