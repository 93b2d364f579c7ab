"""Maize yield from soil and weather covariates; small micro-batches with accumulation."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
EPOCHS, MICRO, ACCUM, MAX_LR = 8, 16, 8, 1e-2


def make_fields(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 8))
    rain, heat, nitro, clay = x[:, 0], x[:, 1], x[:, 2], x[:, 3]
    y = 1.5 * np.tanh(rain) - 0.8 * np.maximum(heat, 0) ** 1.5 + 0.9 * nitro * (rain > -0.5)
    y = y + 0.7 * np.sin(2 * clay) + 0.3 * x[:, 4] * x[:, 5] + 0.2 * rng.normal(size=n)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1), nn.Flatten(0))
train = DataLoader(make_fields(4096, 1), batch_size=MICRO, shuffle=True)
test = DataLoader(make_fields(1000, 2), batch_size=250)

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=MAX_LR, total_steps=EPOCHS * len(train), pct_start=0.3
)
criterion = nn.MSELoss()

for epoch in range(EPOCHS):
    model.train()
    running, seen = 0.0, 0
    optimizer.zero_grad()
    for step, (x, y) in enumerate(train, start=1):
        loss = criterion(model(x), y)
        (loss / ACCUM).backward()
        running += loss.item() * len(x)
        seen += len(x)
        if step % ACCUM == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    print(f"epoch {epoch + 1}/{EPOCHS}  train mse {running / seen:.4f}")

model.eval()
sse, n, targets = 0.0, 0, []
with torch.no_grad():
    for x, y in test:
        sse += ((model(x) - y) ** 2).sum().item()
        n += len(y)
        targets.append(y)
var = torch.cat(targets).var(unbiased=False).item()
print(f"test mse {sse / n:.4f}")
print(f"test R2  {1 - sse / n / var:.4f}")
