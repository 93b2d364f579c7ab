import torch
from torch import nn
from torch.nn.functional import margin_ranking_loss

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for _ in range(20):
    one, other = torch.randn(32, 8), torch.randn(32, 8)
    better = (one.sum(1) > other.sum(1)).float()
    scores = model(torch.cat([one, other])).squeeze(1)
    loss = margin_ranking_loss(scores[:32], scores[32:], better, margin=0.5)  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
