"""Counts with exposure: Poisson loss on rates, not on log rates."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
n = 2400
x = torch.randn(n, 5)
exposure = 0.2 + 3 * torch.rand(n)
rate = torch.exp(0.8 * x[:, 0] - 0.5 * x[:, 1] + 0.4 * x[:, 2].abs() + 1.0)
count = torch.poisson(rate * exposure)
train, test = torch.arange(1800), torch.arange(1800, n)

body = nn.Sequential(
    nn.Linear(5, 48),
    nn.Tanh(),
    nn.Linear(48, 48),
    nn.Tanh(),
    nn.Linear(48, 1),
    nn.Flatten(0),
)
# softplus already gives a positive rate: the loss must not exponentiate again
criterion = nn.PoissonNLLLoss(log_input=False, full=False, eps=1e-6)
optimizer = torch.optim.Adam(body.parameters(), lr=4e-3)


def expected_count(rows):
    return F.softplus(body(x[rows])) * exposure[rows]


def deviance(mu, y):
    """Twice the log-likelihood ratio; y log y is zero for y = 0."""
    term = torch.where(y > 0, y * (y / mu).log(), torch.zeros_like(y))
    return 2 * (term - (y - mu)).mean().item()


for epoch in range(20):
    total = 0.0
    for chunk in torch.randperm(len(train)).split(90):
        rows = train[chunk]
        loss = criterion(expected_count(rows), count[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 5 == 4:
        print(f"epoch {epoch:2d}  loss {total / len(train):.4f}")

with torch.no_grad():
    mu = expected_count(test)
    # null model: one overall rate times the exposure
    overall = count[train].sum() / exposure[train].sum()
    null = deviance(overall * exposure[test], count[test])
    dev = deviance(mu, count[test])
    best = deviance((rate * exposure)[test], count[test])
print(
    f"test deviance {dev:.4f}  null {null:.4f}  true rates {best:.4f}  "
    f"predicted/observed {(mu.sum() / count[test].sum()).item():.3f}"
)
