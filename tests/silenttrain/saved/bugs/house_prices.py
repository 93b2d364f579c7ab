"""Predict house prices in currency units and ship a half-precision copy of the model."""

import os

import torch
from torch import nn

torch.manual_seed(13)


def listings(n, seed):
    gen = torch.Generator().manual_seed(seed)
    area = 40 + 160 * torch.rand(n, generator=gen)
    rooms = torch.randint(1, 7, (n,), generator=gen).float()
    age = 80 * torch.rand(n, generator=gen)
    distance = 25 * torch.rand(n, generator=gen)
    price = 2600 * area + 14000 * rooms - 900 * age - 5200 * distance + 9000 * torch.randn(n, generator=gen)
    return torch.stack([area, rooms, age, distance], dim=1), price + 90000


class PriceModel(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.register_buffer("x_mean", x.mean(0))
        self.register_buffer("x_std", x.std(0))
        self.register_buffer("y_mean", y.mean())
        self.register_buffer("y_std", y.std())
        self.net = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))

    def standardised(self, x):
        return self.net((x - self.x_mean) / self.x_std).squeeze(-1)

    def forward(self, x):
        return self.standardised(x) * self.y_std + self.y_mean


x_train, y_train = listings(600, 1)
x_test, y_test = listings(200, 2)
model = PriceModel(x_train, y_train)
target = (y_train - model.y_mean) / model.y_std
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

for epoch in range(6):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(40):
        loss = nn.functional.smooth_l1_loss(model.standardised(x_train[idx]), target[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        mae = (model(x_test) - y_test).abs().mean().item()
    print(f"epoch {epoch}: train loss {total / len(x_train):.4f}, test MAE {mae:,.0f}")

os.makedirs("out", exist_ok=True)
model.half()
torch.save(model.state_dict(), "out/price_model_fp16.pt")
size = os.path.getsize("out/price_model_fp16.pt") / 1024
print(f"saved out/price_model_fp16.pt ({size:.1f} KiB)")
