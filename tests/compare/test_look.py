"""What a model gives with another start's rows and weights is asked of a copy: the script's own is called no more."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from harness.compare.look import Look, _random_states
from harness.starts.orders import Keep
from harness.watch.bus import Suspended
from harness.watch.events import Forward


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls = nn.Linear(4, 2), 0

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.inner(rows)


def seen(model: nn.Module, tmp_path: Path) -> dict[str, Any]:
    """What is kept of a first forward pass, with what another start has kept."""
    torch.save(
        {
            "args": [torch.ones(3, 4)],
            "kwargs": {},
            "weights": {name: each.detach() + 1 for name, each in model.state_dict().items()},
            "model": list(model.state_dict()),
            "random": _random_states(),
        },
        tmp_path / "other.pt",
    )
    recorder = SimpleNamespace(models=[model], tensors=lambda: dict(model.named_parameters()))
    monitor: Any = SimpleNamespace(suspended=Suspended())
    recorder.monitor = monitor
    recording: Any = SimpleNamespace(recorders=[recorder], updates=0)
    look = Look(monitor, recording, Keep(1, str(tmp_path / "kept.pt"), str(tmp_path / "other.pt")))
    rows = torch.zeros(3, 4)
    try:
        look.on_forward(Forward(1, model, (rows,), {}, model(rows), gradients=True))
    finally:
        look._end()
    return look._kept


def test_a_copy_is_asked(tmp_path: Path) -> None:
    model = Counting()
    before = torch.get_rng_state()
    given = seen(model, tmp_path)["given"]
    assert [(name, kind) for name, kind, _ in given] == [("inner", "Linear"), ("", "Counting")]
    assert torch.allclose(given[0][2][0], (model.inner.weight + 1).sum(1) + model.inner.bias + 1)
    assert model.calls == 1
    assert torch.equal(torch.get_rng_state(), before)


def test_what_cannot_be_copied_is_not_asked(tmp_path: Path) -> None:
    model = Counting()
    model.lock = threading.Lock()  # type: ignore[assignment]
    assert seen(model, tmp_path)["given"] is None
    assert model.calls == 1
