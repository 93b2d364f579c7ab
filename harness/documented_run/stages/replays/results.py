"""What replays are kept as."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from harness.findings import Difference


@dataclass
class Replay:
    """What a short training did."""

    losses: list[float]
    """One for each forward; with several processes the mean over the ranks, whose batches are equally large."""
    grad_norms: list[float]
    """The 2-norm over all gradients, as each update used them."""
    parameters: dict[str, torch.Tensor]
    """After the last update, on the CPU."""


@dataclass
class Replays:
    """What the stage equivalence did and measured."""

    trainings: dict[str, Replay] = field(default_factory=dict)
    """Replays by name: "plain" and the run's own loop; "one batch" and "micro-batches"; "float32" and "bf16"."""
    no_bf16: str | None = None
    """Why no replay could be made in bf16."""
    differences: list[Difference] = field(default_factory=list)
    """Where Trainer is not the document's own loop."""
    max_differences: dict[str, float] = field(default_factory=dict)
    """How far the loop and the plain loop were apart at most, by what was compared."""
