"""What the stage costs is kept as."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Costs:
    """What was measured, by the way in which it was done."""

    corpus: int = 0
    """The bytes of the corpus whose memory was measured."""
    resident: dict[str, int] = field(default_factory=dict)
    """By how much the largest resident memory of a process grew, in bytes: "mapped" and "in memory"."""
    kept: dict[str, int] = field(default_factory=dict)
    """The bytes that a forward pass keeps for a backward pass: "with gradients" and "no_grad"."""
    graphs: dict[str, list[int]] = field(default_factory=dict)
    """How many graphs were compiled after each batch: "one width" and "own widths"."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why something was not measured, by the field."""
