# %% River level six hours ahead from rain and level of the last two days
import numpy as np
import torch
from torch import nn

torch.manual_seed(15)
rng = np.random.default_rng(15)
PAST, AHEAD = 24, 6

# %% simulated catchment
hours = 4000
rain = rng.gamma(0.3, 1.5, hours) * (rng.random(hours) < 0.25)
store, level = 0.0, np.zeros(hours)
for t in range(hours):
    store = 0.93 * store + rain[max(t - 4, 0)]
    level[t] = 0.5 * np.sqrt(store) * 2 + 0.05 * rng.normal()
series = np.stack([rain, level], axis=1)

# %% windows: [t - PAST, t) -> level at t + AHEAD - 1
ends = np.arange(PAST, hours - AHEAD + 1)
windows = np.stack([series[t - PAST : t] for t in ends])
future = level[ends + AHEAD - 1]
now = level[ends - 1]

# %% past for training, future for testing, with a gap so that no hour is in both
cut = int(0.75 * len(ends))
train = np.arange(0, cut - PAST - AHEAD)
test = np.arange(cut, len(ends))
mu, sd = series[: ends[train[-1]]].mean(0), series[: ends[train[-1]]].std(0)
x = torch.tensor((windows - mu) / sd, dtype=torch.float32)
y = torch.tensor((future - now) / sd[1], dtype=torch.float32)

# %% model and training; the training windows themselves are visited in random order
model = nn.Sequential(nn.Flatten(), nn.Linear(2 * PAST, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
shuffled = torch.from_numpy(train)
for epoch in range(20):
    model.train()
    total = 0.0
    shuffled = shuffled[torch.randperm(len(shuffled))]
    for idx in shuffled.split(64):
        loss = nn.functional.mse_loss(model(x[idx]).squeeze(-1), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1}: train mse {total / len(train):.4f}")

# %% test in metres
model.eval()
with torch.no_grad():
    change = model(x[test]).squeeze(-1).numpy() * sd[1]
err = now[test] + change - future[test]
naive = now[test] - future[test]
print(f"test RMSE {np.sqrt((err**2).mean()):.4f} m   persistence {np.sqrt((naive**2).mean()):.4f} m")
print(f"skill {1 - (err**2).sum() / (naive**2).sum():.4f}")
