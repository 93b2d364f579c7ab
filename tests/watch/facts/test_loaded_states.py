"""States that share their memory with a model: where they were kept."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from harness.watch import watch

ID = "weights::state-kept-without-copy"


@pytest.mark.parametrize("how", ["kept", "copied", "two models", "kept tensor by tensor"])
def test_where_a_state_was_kept(how: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    other = copy.copy(model) if how == "two models" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with watch(select=[ID], raise_errors=False) as watched:
        for update in range(3):
            optimizer.zero_grad()
            model(torch.ones(8, 4)).square().mean().backward()
            optimizer.step()
            if update == 1:
                kept = model.state_dict()  # kept
        if how == "copied":
            kept = copy.deepcopy(kept)
        elif how == "two models":
            kept = model.state_dict()
        elif how == "kept tensor by tensor":
            kept = dict(kept)
        other.load_state_dict(kept)  # loaded
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    expected = {"copied": [], "kept": ["# kept"]}.get(how, ["# loaded"])
    places = [int(str(each.where).rpartition(":")[2]) for each in watched.all_findings]
    assert [lines[place - 1].rpartition("  ")[2] for place in places] == expected
    assert [dict(each.details) for each in watched.all_findings] == [{"case": "kept"} if how == "kept" else {}] * len(
        expected
    )
