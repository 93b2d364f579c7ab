"""What stands for a function is taken for it by what pickles functions, or looks into them."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from datasets.utils._dill import dumps
from torch.nn.functional import cross_entropy

from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Options
from harness.watch.session import Session

OF_A_SCRIPT = """
import json, torch
from torch import nn

isinstance, names = len, {"dumps": 1}

def prints(row):
    print(row)

def writes(row):
    return dumps(row)

def loses(row):
    return cross_entropy(row, row)

class Net(nn.Module):
    def forward(self, rows):
        return rows + 1

def embeds(row):
    return Net().forward(row)
"""


def script() -> dict[str, Any]:
    """Functions as a script has them, which are pickled with what they name."""
    found: dict[str, Any] = {
        "__name__": "__main__",
        "dumps": json.dumps,
        "cross_entropy": torch.nn.functional.cross_entropy,
    }
    exec(OF_A_SCRIPT, found)
    return found


def pickled(function: Callable[..., Any]) -> bytes:
    """What datasets makes the fingerprint of a function of."""
    found: bytes = dumps(function)
    return found


def watched(look: Callable[[], Any]) -> Any:
    with instrumented(Session(Options(), Locator())):
        return look()


@pytest.mark.parametrize("name", ["prints", "writes", "loses"])
def test_a_function_of_a_script_is_the_same_to_datasets(name: str) -> None:
    assert watched(lambda: pickled(script()[name])) == pickled(script()[name])


def test_a_class_of_a_script_is_pickled_with_its_own_functions() -> None:
    from harness.watch.instrument.patches import Patches

    def look() -> list[bytes]:
        found, patches = script(), Patches(lambda error: None)
        patches.wrap_calls(found["Net"], "forward", lambda original, args, kwargs: None, where=lambda module: True)
        assert found["embeds"](1) is None
        embeds = pickled(found["embeds"])
        patches.undo()
        return [embeds, pickled(script()["embeds"])]

    first, alone = watched(look)
    again, _ = watched(look)
    assert first == again
    assert pickle.loads(first)(1) == pickle.loads(alone)(1) == 2


def test_a_function_is_found_by_its_name_and_has_its_signature() -> None:
    def look() -> list[Any]:
        functions = json.dumps, torch.nn.functional.cross_entropy, torch.save, torch.nn.utils.clip_grad_norm_
        assert torch.nn.utils.clip_grad_norm_ is torch.nn.utils.clip_grad.clip_grad_norm_
        for each in (print, torch.randperm, *functions):
            assert pickle.loads(pickle.dumps(each)) is each
        return [inspect.signature(each) for each in functions]

    assert watched(look) == look()
    assert cross_entropy is torch.nn.functional.cross_entropy
