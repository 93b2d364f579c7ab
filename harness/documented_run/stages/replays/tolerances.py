"""How far replays are apart, and how far their arithmetic allows."""

from __future__ import annotations

import math

import torch

from harness.documented_run.stages.chain import Run
from harness.documented_run.stages.replays.results import Replay
from harness.documented_run.stages.replays.twins import has_float64

BF16_UNIT = torch.finfo(torch.bfloat16).eps / 2
"""2^-8: by so much of its size bf16 rounds a number."""


def rounding(run: Run, dtype: torch.dtype) -> float:
    """How far two orders of one computation may be apart, relative to the result.

    The error of a sum of n rounded terms is at most n u, u being half the distance of 1 to the next number (Higham,
    "Accuracy and Stability of Numerical Algorithms", 3.1). The longest chain of terms behind a gradient goes over all
    tokens of the batch and, forth and back, the inputs and outputs of every linear layer.
    """
    linear = [module for module in run.model.modules() if isinstance(module, torch.nn.Linear)]
    longest = max(len(ids) for ids in run.model_datasets["train"].with_format(None)["input_ids"])
    chain = run.recipe.rows_per_update * longest + 2 * sum(each.in_features + each.out_features for each in linear)
    return chain * torch.finfo(dtype).eps / 2


def rounding_band(run: Run, unit: float) -> float:
    """How far a loss may be from float32's where products are rounded by up to ``unit`` of their size.

    Each layer rounds its hidden states about a dozen times. Roundings add up like steps of a random walk:
    sqrt(12 layers) units, and four times that is not reached by chance. The loss of two logits of size 1 moves as much.
    """
    layers = getattr(run.model.config, "num_hidden_layers", 12)
    return 4 * math.sqrt(12 * layers) * unit


def tolerance_of(run: Run) -> float:
    """Relative tolerance of the comparison with the plain loop."""
    if run.recipe.processes == 1 and run.device.type == "cpu":
        return 0.0
    return rounding(run, torch.float64 if has_float64(run) else torch.float32)


def tolerance_text(tolerance: float) -> str:
    return f", within {tolerance:.2g} of it" if tolerance else ""


def largest_difference(first: Replay, second: Replay) -> float:
    """Largest difference of any parameter at the end."""
    return max(
        (first.parameters[name].double() - second.parameters[name].double()).abs().max().item()
        for name in first.parameters
    )


def relative(ours: list[float], theirs: list[float]) -> float:
    """The largest difference of two lists, relative to the first."""
    pairs = zip(ours, theirs, strict=False)
    return max((abs(one - other) / (abs(one) or 1.0) for one, other in pairs), default=0.0)


def max_differences(run: Run) -> dict[str, float]:
    """How far the replays are apart at most: relative to the plain loop's; parameters and bf16's loss as they are."""
    distances: dict[str, float] = {}
    trainings = run.replays.trainings
    if "plain" in trainings:
        ours, theirs = trainings["plain"], trainings[run.recipe.loop]
        distances |= {
            "updates": float(len(ours.grad_norms)),
            "loss": relative(ours.losses, theirs.losses),
            "gradient norm": relative(ours.grad_norms, theirs.grad_norms),
            "parameters": largest_difference(ours, theirs),
        }
    if "micro-batches" in trainings:
        ours, theirs = trainings["one batch"], trainings["micro-batches"]
        distances["accumulated gradient norm"] = relative(ours.grad_norms, theirs.grad_norms)
    if "bf16" in trainings:
        losses = zip(trainings["float32"].losses, trainings["bf16"].losses, strict=False)
        distances["loss under bf16"] = max(abs(float32 - bf16) for float32, bf16 in losses)
    return distances
