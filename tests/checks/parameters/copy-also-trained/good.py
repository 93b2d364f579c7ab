import copy

import torch
from torch import nn
from torch.nn.functional import cosine_similarity

torch.manual_seed(0)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
        self.target = copy.deepcopy(self.online)
        self.predictor = nn.Linear(8, 8)

    def forward(self, one, other):
        return -cosine_similarity(self.predictor(self.online(one)), self.target(other).detach()).mean()


model = Pair()
optimizer = torch.optim.Adam([*model.online.parameters(), *model.predictor.parameters()], lr=1e-3)

for _ in range(20):
    rows = torch.randn(64, 8)
    loss = model(rows + 0.1 * torch.randn(64, 8), rows + 0.1 * torch.randn(64, 8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(model.target.parameters(), model.online.parameters(), strict=True):
            kept.lerp_(new, 0.05)
