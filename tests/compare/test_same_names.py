"""Tensors and modules of two models under names that are not the same."""

from __future__ import annotations

import torch
from torch import nn

from harness.compare.names import Modules, matched
from harness.digests import named_tensors


def names(a: nn.Module, b: nn.Module) -> dict[str, str] | None:
    return matched(named_tensors([a]), named_tensors([b]))


def test_the_same_names_need_no_shapes() -> None:
    assert names(nn.Linear(2, 3), nn.Linear(4, 3)) == {"weight": "weight", "bias": "bias"}


def test_a_wrapped_model() -> None:
    assert names(nn.Linear(2, 3), nn.Sequential(nn.Linear(2, 3))) == {"0.weight": "weight", "0.bias": "bias"}


def test_the_weights_say_what_moved_where_the_shapes_do_not() -> None:
    a = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    b = nn.Sequential(nn.Identity(), *a)
    assert names(a, b) == {f"{n + 1}.{what}": f"{n}.{what}" for n in range(3) for what in ("weight", "bias")}


def test_other_tensors_have_no_names_in_common() -> None:
    assert names(nn.Linear(2, 3), nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))) is None
    assert names(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 2))) is None


def test_modules_without_tensors_are_paired_in_their_order() -> None:
    a = {"": "Net()", "fc": "Linear(2)", "drop": "Dropout(p=0.1)"}
    b = {"": "Mlp()", "layers": "Sequential()", "layers.0": "Linear(2)", "layers.1": "Dropout(p=0.2)"}
    found = Modules.paired(a, b, {"layers.0.weight": "fc.weight"})
    assert found.pairs == [
        ("fc", "Linear(2)", "Linear(2)"),
        ("", "Net()", "Mlp()"),
        ("drop", "Dropout(p=0.1)", "Dropout(p=0.2)"),
    ]
    assert found.only == [("layers", "none", "Sequential()")]


def test_several_models_have_each_tensor_once() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
    assert list(named_tensors([first, second, nn.Sequential(first)])) == ["weight", "bias", "Linear 2.weight"]
    assert torch.equal(named_tensors([first, second])["Linear 2.weight"], second.weight)
