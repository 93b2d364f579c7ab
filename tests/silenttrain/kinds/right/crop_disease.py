"""Severity of leaf rust from hyperspectral features, with gradient accumulation and OneCycle."""

import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
EPOCHS, MICRO, ACCUM = 9, 16, 6


def make_leaves(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    y = np.tanh(x[:, 0] * x[:, 1]) + 0.8 * np.abs(x[:, 2]) - 0.6 * x[:, 3] + 0.2 * rng.normal(size=n)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


model = nn.Sequential(nn.Linear(10, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
train = DataLoader(make_leaves(3000, 1), batch_size=MICRO, shuffle=True, drop_last=True)
test = DataLoader(make_leaves(900, 2), batch_size=300)

updates_per_epoch = math.ceil(len(train) / ACCUM)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=1e-2, epochs=EPOCHS, steps_per_epoch=updates_per_epoch
)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for step, (x, y) in enumerate(train):
        window_start = step - step % ACCUM
        window = min(ACCUM, len(train) - window_start)
        loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
        (loss / window).backward()
        total += loss.item()
        if (step + 1) % ACCUM == 0 or step + 1 == len(train):
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    lr = optimizer.param_groups[0]["lr"]
    print(f"epoch {epoch + 1}  train mse {total / len(train):.4f}  lr {lr:.2e}")

model.eval()
with torch.no_grad():
    pred = torch.cat([model(x).squeeze(-1) for x, _ in test])
target = test.dataset.tensors[1]
mse = (pred - target).pow(2).mean()
print(f"test mse {mse:.4f}  R2 {1 - mse / target.var(unbiased=False):.4f}")
