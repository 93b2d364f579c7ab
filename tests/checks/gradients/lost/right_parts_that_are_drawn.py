import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Gated(nn.Module):
    """Layers of which some are left out, each with a gate that another optimizer trains."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(6))
        self.gates = nn.ParameterList(nn.Parameter(torch.zeros(1)) for _ in self.layers)
        self.head = nn.Linear(6, 2)

    def forward(self, inputs):
        drawn = torch.randperm(len(self.layers))[:2].tolist()
        for number in drawn:
            inputs = inputs + self.gates[number].sigmoid() * self.layers[number](inputs).tanh()
        return self.head(inputs)


torch.manual_seed(0)
model = Gated()
of_gates = torch.optim.Adam(model.gates.parameters(), lr=1e-2)
of_weights = torch.optim.SGD([*model.layers.parameters(), *model.head.parameters()], lr=0.05)
inputs = torch.randn(400, 6)
labels = (inputs[:, 0] > inputs[:, 1]).long()
for _ in range(60):
    for optimizer, rows in ((of_gates, torch.arange(200, 400)), (of_weights, torch.arange(200))):
        rows = rows[torch.randperm(200)[:20]]
        optimizer.zero_grad()
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
