"""The second device itself: it computes what the CPU does, and refuses what a GPU refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.watched import device_server
from tests.server import ROOT, run_python

COMPUTED = """
import copy
import os
import torch
from torch import nn
from tests.devices import second

torch.manual_seed(0)
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(4, 5, batch_first=True), nn.GRU(5, 3, batch_first=True)
        self.last = nn.Linear(3, 2)
    def forward(self, given):
        return self.last(self.gru(self.lstm(given)[0])[0].mean(1))

images, sequences, ids = torch.randn(6, 3, 8, 8), torch.randn(6, 7, 4), torch.randint(9, (6, 5))
convolved = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3), nn.Flatten())
embedded = nn.Sequential(nn.Embedding(9, 4), nn.TransformerEncoderLayer(4, 2, 8, dropout=0, batch_first=True))
for model, given in ((convolved, images), (Recurrent(), sequences), (embedded, ids)):
    there = copy.deepcopy(model).to("second")
    for each, inputs in ((model, given), (there, given.to("second"))):
        each(inputs).square().sum().backward()
    named = dict(there.named_buffers()) | {name: p.grad for name, p in there.named_parameters()}
    for name, value in [*model.named_buffers(), *((name, p.grad) for name, p in model.named_parameters())]:
        assert named[name].device.type == "second", name
        torch.testing.assert_close(named[name].cpu(), value, rtol=1e-4, atol=1e-5)
part = torch.zeros(2, 3, dtype=torch.bool, device="second")
part[:, 1:] |= torch.ones(2, 2, dtype=torch.bool, device="second")
assert part.cpu().tolist() == [[False, True, True]] * 2, "a part is changed in place"
os._exit(0)  # autograd's thread for the device may ask for Python while Python ends, which ends the process otherwise
"""

REFUSED = """
import pytest
import torch
from tests.devices import second

there = torch.ones(2, device="second")
for other in (torch.ones(2), torch.ones(2, device="second:1")):
    with pytest.raises(RuntimeError, match="on the same device"):
        there + other
assert (there + torch.tensor(1.0)).tolist() == [2, 2], "a single number may come along"
"""

COUNTED = """
import torch
from tests.devices import second

there = torch.ones(2, device="second")
(there @ there + 1).sqrt_()
assert second.waits() == (0, 0), "computing waits for nothing"
float(there.sum()), bool(there.any()), there.cpu()
assert second.waits() == (2, 1)
places = []
second.observe(lambda: places.append(1))
there.sum().item()
second.observe(None)
there.sum().item()
assert places == [1]
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [COMPUTED, REFUSED, COUNTED], ids=["computes", "refuses", "counts"])
def test_it(program: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    device_server(pytestconfig)
    done = run_python(tmp_path, "-c", program, environment={"PYTHONPATH": str(ROOT)})
    assert done.status == 0, done.stderr
