"""How far apart tensors of two runs are: by what share, by one factor, by clipping, or within rounding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch


def clipping_between(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> str | None:
    """How gradients were clipped; None where something else was done to them."""
    if factor := factor_between(before, after):
        return f"multiplied by {factor:.4g}"
    most = max((float(each.abs().max()) for each in after.values() if each.numel()), default=0.0)
    if before.keys() == after.keys() and all(torch.equal(before[k].clamp(-most, most), after[k]) for k in before):
        return f"clipped at {most:.4g}"
    return None


def factor_between(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> float | None:
    """Factor by which all tensors of ``a`` are multiplied in ``b``; None where there is no one factor."""
    norms = [math.sqrt(sum(float(tensor.double().square().sum()) for tensor in each.values())) for each in (a, b)]
    if not norms[0] or a.keys() != b.keys():
        return None
    factor = norms[1] / norms[0]
    for name in a:
        if a[name].shape != b[name].shape or gap(a[name].double() * factor, b[name]).size > 1e-4:
            return None
    return factor


@dataclass(frozen=True)
class Gap:
    size: float
    """The largest difference, as a share of the largest number of the first; 0.0 where all bits agree."""
    rounding: float


def gap(a: torch.Tensor, b: torch.Tensor) -> Gap:
    """How far apart two tensors of one shape are, and how far rounding may bring them."""
    rounding = max(_unit(a), _unit(b)) * 4 + 64 * 2**-23
    if a.dtype == b.dtype and torch.equal(a, b):
        return Gap(0.0, rounding)
    one, other = a.double().cpu(), b.double().cpu()
    alike = (one == other) | (one.isnan() & other.isnan())
    apart = torch.where(alike, torch.zeros_like(one), (one - other).abs())
    largest = float(one[one.isfinite()].abs().max()) if one.isfinite().any() else 0.0
    worst = float(apart.max()) if apart.numel() else 0.0
    if math.isnan(worst) or math.isinf(worst):
        return Gap(math.inf, rounding)
    return Gap(worst / largest if largest else float(bool(worst)), rounding)


def _unit(tensor: torch.Tensor) -> float:
    return torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 0.0
