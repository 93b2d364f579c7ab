"""Regression on a smooth surface with batches cut by hand from a permutation."""

import torch
import torch.nn as nn

torch.manual_seed(0)

N, BATCH, EPOCHS = 2000, 50, 15


def surface(p):
    return torch.sin(2 * p[:, 0]) * p[:, 1] + 0.5 * p[:, 2] ** 2


points = 3 * torch.rand(N + 500, 3) - 1.5
values = surface(points) + 0.05 * torch.randn(N + 500)

# one fixed random order, then the first N rows train
order = torch.randperm(N + 500)
train_idx, test_idx = order[:N], order[N:]
n_batches = N // BATCH

model = nn.Sequential(
    nn.Linear(3, 64),
    nn.Tanh(),
    nn.Linear(64, 64),
    nn.Tanh(),
    nn.Linear(64, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.MSELoss()

for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for b in torch.randperm(n_batches).tolist():
        idx = train_idx[b : b + BATCH]
        prediction = model(points[idx]).squeeze(1)
        loss = loss_fn(prediction, values[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch % 3 == 2:
        print(f"epoch {epoch:2d}  train mse {running / n_batches:.4f}")

model.eval()
with torch.no_grad():
    mse = loss_fn(model(points[test_idx]).squeeze(1), values[test_idx]).item()
print(f"test mse {mse:.4f}")
