"""Random network distillation as a novelty score."""

import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

torch.manual_seed(4)


def make_net(width, depth):
    layers, size = [], 10
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.ELU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 8))


# a fixed random function; only the predictor learns to imitate it
target = make_net(64, 2)
predictor = make_net(64, 3)
for m in target.modules():
    if isinstance(m, nn.Linear):
        nn.init.orthogonal_(m.weight, gain=1.7)
target.requires_grad_(False)
target.eval()
optimizer = torch.optim.Adam(predictor.parameters(), lr=2e-3)

basis = torch.randn(3, 10)
familiar = torch.randn(2000, 3) @ basis + 0.05 * torch.randn(2000, 10)
mean, std = familiar.mean(0), familiar.std(0)


def features(x):
    return ((x - mean) / std).clamp(-5, 5)


def novelty(x):
    x = features(x)
    return (predictor(x) - target(x)).pow(2).mean(1)


for epoch in range(12):
    order = torch.randperm(len(familiar))
    for idx in order.split(100):
        per_row = novelty(familiar[idx])
        # as in the paper, only a part of the rows trains the predictor
        used = (torch.rand(len(idx)) < 0.5).float()
        loss = (per_row * used).sum() / used.sum().clamp(min=1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch}  distillation error {loss.item():.5f}")

known = torch.randn(500, 3) @ basis + 0.05 * torch.randn(500, 10)
novel = torch.randn(500, 10) * std + mean
with torch.no_grad():
    score = torch.cat([novelty(known), novelty(novel)])
truth = torch.cat([torch.zeros(500), torch.ones(500)])
print(f"novelty auroc {roc_auc_score(truth.numpy(), score.numpy()):.3f}")
