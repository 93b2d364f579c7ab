import copy

import torch
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)


class Contrast(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = torch.nn.Linear(6, 4)
        self.key = copy.deepcopy(self.query).requires_grad_(False)

    def forward(self, one, other):
        with torch.no_grad():
            for slow, fast in zip(self.key.parameters(), self.query.parameters(), strict=True):
                slow.mul_(0.99).add_(fast, alpha=0.01)
            keys = normalize(self.key(other))
        return normalize(self.query(one)) @ keys.T / 0.2


model = Contrast()
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.1)
for _ in range(10):
    rows = torch.randn(16, 6)
    similar = model(rows + 0.1 * torch.randn_like(rows), rows)
    optimizer.zero_grad()
    cross_entropy(similar, torch.arange(16)).backward()
    optimizer.step()
