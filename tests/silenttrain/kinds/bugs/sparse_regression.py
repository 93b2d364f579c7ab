"""Linear regression with an L1 penalty to find the few relevant features."""

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
N, D, RELEVANT = 160, 80, 6

X = rng.normal(size=(N + 400, D)).astype(np.float32)
coef = np.zeros(D, dtype=np.float32)
coef[:RELEVANT] = rng.choice([-2.0, 2.0], RELEVANT)
y = X @ coef + rng.normal(scale=2.0, size=N + 400).astype(np.float32)

X_train, y_train = torch.from_numpy(X[:N]), torch.from_numpy(y[:N])
X_test, y_test = torch.from_numpy(X[N:]), torch.from_numpy(y[N:])

model = nn.Linear(D, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
l1_lambda = 0.5

for epoch in range(80):
    model.train()
    running = 0.0
    for idx in torch.randperm(N).split(32):
        pred = model(X_train[idx]).squeeze(-1)
        l1_norm = 0.0
        for name, param in model.named_parameters():
            if "weight" in name:
                l1_norm += np.abs(param.detach().numpy()).sum()
        loss = criterion(pred, y_train[idx]) + l1_lambda * l1_norm
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    if epoch % 20 == 19:
        print(f"epoch {epoch}  loss {running / N:.3f}  l1 {l1_norm:.3f}")

model.eval()
with torch.no_grad():
    mse = criterion(model(X_test).squeeze(-1), y_test).item()
    weights = model.weight[0].abs()
print(
    f"test mse {mse:.3f}  features with |w| > 0.1: {(weights > 0.1).sum().item()} of {D}  "
    f"largest irrelevant weight {weights[RELEVANT:].max().item():.3f}"
)
