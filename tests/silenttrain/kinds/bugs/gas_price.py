# %% Next-week average of a gas hub price from the last month of quotes
import numpy as np
import torch
from torch import nn

torch.manual_seed(77)
rng = np.random.default_rng(77)
LOOKBACK, HORIZON = 20, 10

# %% quotes of about eight years and two drivers
days = 2000
shock = rng.normal(0, 1, days)
price = np.zeros(days)
for t in range(1, days):
    price[t] = 0.97 * price[t - 1] + 0.4 * shock[t]
storage = np.cumsum(rng.normal(0, 0.1, days))
storage -= np.linspace(0, storage[-1], days)
temperature = np.sin(np.arange(days) / 365 * 2 * np.pi) + 0.3 * rng.normal(size=days)
panel = np.stack([price, storage, temperature], axis=1)

# %% sliding windows; target is the change of the average price over the horizon
inputs, targets = [], []
for t in range(LOOKBACK, days - HORIZON):
    inputs.append(panel[t - LOOKBACK : t])
    targets.append(price[t : t + HORIZON].mean() - price[t - 1])
inputs = torch.tensor(np.stack(inputs), dtype=torch.float32)
targets = torch.tensor(np.array(targets), dtype=torch.float32)

# %% 80 / 20 split
n_train = int(0.8 * len(inputs))
order = torch.randperm(len(inputs))
train_idx, test_idx = order[:n_train], order[n_train:]
mean = inputs[train_idx].mean(dim=(0, 1))
std = inputs[train_idx].std(dim=(0, 1))
x_train, y_train = (inputs[train_idx] - mean) / std, targets[train_idx]
x_test, y_test = (inputs[test_idx] - mean) / std, targets[test_idx]

# %% model
model = nn.Sequential(
    nn.Flatten(), nn.Linear(LOOKBACK * 3, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

# %% training
for epoch in range(40):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(64):
        loss = nn.functional.mse_loss(model(x_train[idx]).squeeze(-1), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if (epoch + 1) % 10 == 0:
        print(f"epoch {epoch + 1}: train mse {total / len(x_train):.4f}")

# %% test
model.eval()
with torch.no_grad():
    pred = model(x_test).squeeze(-1)
mse = (pred - y_test).pow(2).mean()
skill = 1 - mse / y_test.pow(2).mean()
direction = ((pred > 0) == (y_test > 0)).float().mean()
print(f"test mse {mse:.4f}   skill against no change {skill:.4f}   direction hit rate {direction:.4f}")
