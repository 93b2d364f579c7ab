"""Sparse regression: an L1 penalty should find the few features that matter."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, D, USED = 300, 60, 6
L1_LAMBDA = 0.05

true_w = torch.zeros(D)
true_w[torch.randperm(D)[:USED]] = torch.tensor([2.0, -1.5, 1.0, 2.5, -2.0, 1.2])


def draw(n):
    x = torch.randn(n, D)
    return x, x @ true_w + 1.5 * torch.randn(n)


x_train, y_train = draw(N)
x_test, y_test = draw(1000)


class SparseLinear(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.linear = nn.Linear(d, 1)

    def forward(self, x):
        return self.linear(x).squeeze(-1)

    def l1(self):
        return sum(p.abs().sum().item() for name, p in self.named_parameters() if "weight" in name)


model = SparseLinear(D)
opt = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(80):
    model.train()
    total_fit = total_pen = 0.0
    for idx in torch.randperm(N).split(50):
        fit = F.mse_loss(model(x_train[idx]), y_train[idx])
        penalty = L1_LAMBDA * model.l1()
        loss = fit + penalty
        opt.zero_grad()
        loss.backward()
        opt.step()
        total_fit += fit.item()
        total_pen += float(penalty)
    if epoch % 20 == 0:
        print(f"epoch {epoch} fit {total_fit / 6:.3f} penalty {total_pen / 6:.3f}")

model.eval()
with torch.no_grad():
    test_mse = F.mse_loss(model(x_test), y_test).item()
    w = model.linear.weight[0]
    small = (w[true_w == 0].abs() < 0.05).float().mean().item()
print(f"test mse {test_mse:.3f}, share of irrelevant weights near zero {small:.2f}")
