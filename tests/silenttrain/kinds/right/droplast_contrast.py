"""Contrastive pairs need full batches: the ragged tail is left out, and each epoch reshuffles."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(9)
PAIRS, BATCH, EPOCHS = 1000, 96, 14


def translations(n):
    meaning = torch.randn(n, 10)
    left = meaning @ torch.randn(10, 40, generator=torch.Generator().manual_seed(1)) + 0.5 * torch.randn(n, 40)
    right = (meaning @ torch.randn(10, 30, generator=torch.Generator().manual_seed(2))).tanh() + 0.1 * torch.randn(
        n, 30
    )
    return left, right


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 16))
        self.right = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 16))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        za = functional.normalize(self.left(a), dim=1)
        zb = functional.normalize(self.right(b), dim=1)
        return self.scale.exp() * za @ zb.T


left, right = translations(PAIRS)
left_test, right_test = translations(200)
model = TwoTowers()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
goal = torch.arange(BATCH)
steps_per_epoch = PAIRS // BATCH
for epoch in range(EPOCHS):
    order = torch.randperm(PAIRS)
    for step in range(steps_per_epoch):
        rows = order[step * BATCH : (step + 1) * BATCH]
        logits = model(left[rows], right[rows])
        loss = 0.5 * (functional.cross_entropy(logits, goal) + functional.cross_entropy(logits.T, goal))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 1:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

with torch.no_grad():
    logits = model(left_test, right_test)
    top1 = (logits.argmax(1) == torch.arange(200)).float().mean()
    top5 = (logits.topk(5, dim=1).indices == torch.arange(200)[:, None]).any(1).float().mean()
print(f"retrieval among 200: top-1 {top1:.3f}, top-5 {top5:.3f}")
