"""Forecast under drift: the scaler knows the training period only, the test period lies elsewhere."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, RobustScaler

torch.manual_seed(0)
rng = np.random.default_rng(0)

days = 1400
temperature = 12 + 0.012 * np.arange(days) + 6 * np.sin(np.arange(days) / 58) + rng.normal(0, 2, days)
humidity = 55 + 8 * rng.normal(size=days)
spikes = rng.random(days) < 0.02
humidity[spikes] += 120  # a failing sensor now and then
demand = 200 + 4.0 * temperature + 0.15 * temperature**2 + rng.normal(0, 6, days)

raw = np.stack([temperature, humidity], 1)
train_raw, test_raw = raw[:1100], raw[1100:]
train_y, test_y = demand[:1100], demand[1100:]

# fitted on the past; the future is transformed with the same medians and ranges
prepare = make_pipeline(RobustScaler(), PolynomialFeatures(2, include_bias=False))
train_x = torch.tensor(prepare.fit_transform(train_raw), dtype=torch.float32).clamp(-5, 5)
test_x = torch.tensor(prepare.transform(test_raw), dtype=torch.float32).clamp(-5, 5)

center, spread = train_y.mean(), train_y.std()
target = torch.tensor((train_y - center) / spread, dtype=torch.float32)[:, None]
print("train feature means", train_x.mean(0).numpy().round(2))
print("test feature means ", test_x.mean(0).numpy().round(2))

model = nn.Linear(train_x.shape[1], 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
loss_fn = nn.HuberLoss()
for epoch in range(25):
    for idx in torch.randperm(len(train_x)).split(110):
        loss = loss_fn(model(train_x[idx]), target[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 8 == 0:
        print(f"epoch {epoch:2d}  huber {loss.item():.4f}")

with torch.no_grad():
    forecast = model(test_x).squeeze(1).double().numpy() * spread + center
rmse = np.sqrt(np.mean((forecast - test_y) ** 2))
naive = np.sqrt(np.mean((train_y.mean() - test_y) ** 2))
print(f"test rmse {rmse:.2f}  training mean instead {naive:.2f}  noise 6.00")
