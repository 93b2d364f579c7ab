"""Forecast a seasonal series from overlapping windows, split by time with a gap."""

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.default_rng(3)
T, WINDOW, HORIZON = 1500, 24, 3
t = np.arange(T)
series = np.sin(2 * np.pi * t / 24) + 0.5 * np.sin(2 * np.pi * t / 7)
noise = np.zeros(T)
for i in range(1, T):
    noise[i] = 0.7 * noise[i - 1] + 0.15 * rng.normal()
series = torch.tensor(series + noise, dtype=torch.float32)

windows = series.unfold(0, WINDOW + HORIZON, 1)
inputs, targets = windows[:, :WINDOW], windows[:, WINDOW:]

# windows overlap one another; the gap keeps training windows clear of the test span
cut = int(0.8 * len(windows))
gap = WINDOW + HORIZON
train_rows = torch.arange(0, cut - gap)
test_rows = torch.arange(cut, len(windows))

model = nn.Sequential(nn.Linear(WINDOW, 64), nn.ReLU(), nn.Linear(64, HORIZON))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.MSELoss()
batch = 48

for epoch in range(12):
    model.train()
    # a random phase each epoch, so that the batches (and the rows left over) differ
    offset = np.random.default_rng(epoch).integers(batch)
    starts = torch.arange(int(offset), len(train_rows) - batch + 1, batch)
    total = 0.0
    for s in starts[torch.randperm(len(starts))]:
        rows = train_rows[s : s + batch]
        loss = loss_fn(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 2:
        print(f"epoch {epoch:2d}  train mse {total / len(starts):.4f}")

model.eval()
with torch.no_grad():
    prediction = model(inputs[test_rows])
mse = (prediction - targets[test_rows]).pow(2).mean(0)
last = (inputs[test_rows][:, -1:] - targets[test_rows]).pow(2).mean(0)
print("test mse by step  ", [round(v, 4) for v in mse.tolist()])
print("last value instead", [round(v, 4) for v in last.tolist()])
