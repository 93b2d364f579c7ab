"""AdamW then and now: the two formulas, and torch's own class."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import AdamW

from harness.documented_run.loops.adamw import TransformersAdamW, torch_adamw_update

GRADIENTS = st.lists(st.floats(-10, 10), min_size=1, max_size=5)


def updated(optimizer: type[torch.optim.Optimizer], gradients: list[float], **values: Any) -> float:
    parameter = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    stepped = optimizer([parameter], **values)
    for gradient in gradients:
        parameter.grad = torch.full((1,), gradient, dtype=torch.float64)
        stepped.step()
    return parameter.item()


@given(GRADIENTS, st.floats(1e-6, 0.1), st.floats(0, 0.5))
def test_the_formula_is_torchs(gradients: list[float], lr: float, decay: float) -> None:
    expected = torch_adamw_update(1.0, gradients, lr=lr, betas=(0.9, 0.999), eps=1e-8, decay=decay)
    assert updated(AdamW, gradients, lr=lr, weight_decay=decay) == pytest.approx(expected, rel=1e-9)


@given(st.floats(-10, 10), st.floats(1e-6, 0.1), st.floats(0, 0.5))
def test_the_documents_own_in_closed_form(gradient: float, lr: float, decay: float) -> None:
    """One update: the corrected moments are the gradient and its size, epsilon weighs 1 / sqrt(1 - beta2) as much."""
    observed = updated(TransformersAdamW, [gradient], lr=lr, weight_decay=decay)
    moved = 1.0 - lr * gradient / (abs(gradient) + 1e-6 / math.sqrt(1 - 0.999))
    assert observed == pytest.approx(moved * (1 - lr * decay), rel=1e-9)


def test_the_documents_defaults() -> None:
    (group,) = TransformersAdamW([torch.nn.Parameter(torch.ones(1))]).param_groups
    assert {name: group[name] for name in ("lr", "betas", "eps", "weight_decay", "correct_bias")} == {
        "lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.0, "correct_bias": True
    }  # fmt: skip


def test_without_bias_correction_the_first_update_is_three_times_as_large() -> None:
    """(1 - beta1) / sqrt(1 - beta2) = 3.16."""
    moved = 1.0 - updated(TransformersAdamW, [2.0], lr=0.01, correct_bias=False)
    assert moved == pytest.approx(0.01 * 0.1 / math.sqrt(0.001), rel=1e-4)
