"""Steel hardness: the network carries its own scaling as buffers and is fed raw values everywhere."""

import torch
from torch import nn

torch.manual_seed(7)


def steel(n):
    carbon = 0.1 + 0.9 * torch.rand(n)
    chrome = 18 * torch.rand(n)
    heat = 700 + 400 * torch.rand(n)
    minutes = torch.exp(1 + 3 * torch.rand(n))
    hardness = 120 + 150 * carbon + 4 * chrome - 0.15 * (heat - 700) + 8 * minutes.log() + 4 * torch.randn(n)
    return torch.stack([carbon, chrome, heat, minutes], dim=1), hardness


class Normalised(nn.Module):
    def __init__(self, body, x, y):
        super().__init__()
        self.body = body
        self.register_buffer("x_mean", x.mean(0))
        self.register_buffer("x_std", x.std(0))
        self.register_buffer("y_mean", y.mean())
        self.register_buffer("y_std", y.std())

    def forward(self, x):
        z = self.body((x - self.x_mean) / self.x_std).squeeze(1)
        return z * self.y_std + self.y_mean

    def loss(self, x, y):
        return ((self(x) - y) / self.y_std).pow(2).mean()


x_train, y_train = steel(1200)
x_test, y_test = steel(400)
body = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
model = Normalised(body, x_train, y_train)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
for epoch in range(12):
    model.train()
    for rows in torch.randperm(len(x_train)).split(80):
        loss = model.loss(x_train[rows], y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    pred = model(x_test)
rmse = (pred - y_test).pow(2).mean().sqrt()
print(f"test rmse {rmse:.2f} HV, R2 {1 - rmse.pow(2) / y_test.var():.3f}")
