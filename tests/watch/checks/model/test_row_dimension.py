"""Which dimension of what a model is given counts the rows."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.watch import watch


class Series(nn.Module):
    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 8, batch_first=batch_first), nn.Linear(8, 2)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.lstm(given)[0][:, -1])
        return logits


@pytest.mark.parametrize(("batch_first", "labelled"), [(False, True), (True, True), (False, False)])
def test_slices_of_which_each_row_has_a_label_say_which_dimension_is_theirs(batch_first: bool, labelled: bool) -> None:
    torch.manual_seed(0)
    rows, labels, model = torch.randn(60, 12, 4), torch.randint(2, (60,)), Series(batch_first)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(select=["model::output-depends-on-batch"], raise_errors=False) as watched:
        for start in range(0, 40, 10):
            taught = labels[start : start + 10]
            nn.functional.cross_entropy(
                model(rows[start : start + 10]), taught if labelled else taught.clone()
            ).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            model(rows[40:])
    assert bool(watched.all_findings) == (not batch_first and labelled)
    assert bool(watched.looked) == labelled
