"""Sharpen blurred textures: pixel loss plus a feature loss from a small pretrained classifier."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(3)
SIZE, KINDS = 16, 4


def textures(n):
    kind = torch.randint(0, KINDS, (n,))
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    angle = kind[:, None, None] * 0.785
    phase = 6.28 * torch.rand(n, 1, 1)
    wave = torch.sin(1.6 * (xx * angle.cos() + yy * angle.sin()) + phase)
    return (wave + 0.1 * torch.randn(n, SIZE, SIZE)).unsqueeze(1), kind


def degrade(x):
    return functional.avg_pool2d(x, 3, stride=1, padding=1) + 0.3 * torch.randn_like(x)


class FeatureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 16, 3, 2), nn.ReLU())
        self.head = nn.Linear(16, KINDS)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=(2, 3)))

    @torch.no_grad()
    def extract(self, x):
        return self.body(x)


class Sharpener(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 1, 5, padding=2))

    def forward(self, x):
        return x + self.net(x)


x, kind = textures(640)
features = FeatureNet()
optimizer = torch.optim.Adam(features.parameters(), lr=1e-2)
for _ in range(60):
    rows = torch.randint(0, len(x), (64,))
    loss = functional.cross_entropy(features(x[rows]), kind[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
features.requires_grad_(False).eval()

model = Sharpener()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
for epoch in range(14):
    for rows in torch.randperm(len(x)).split(64):
        sharp = x[rows]
        out = model(degrade(sharp))
        pixel = functional.l1_loss(out, sharp)
        perceptual = functional.mse_loss(features.extract(out), features.extract(sharp))
        loss = pixel + 10.0 * perceptual
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: pixel {pixel.item():.4f}, perceptual {perceptual.item():.4f}")

x_test, _ = textures(200)
with torch.no_grad():
    restored = model(degrade(x_test))
    distance = functional.mse_loss(features.body(restored), features.body(x_test))
    pixel = functional.l1_loss(restored, x_test)
print(f"test pixel error {pixel:.4f}, feature distance {distance:.4f}")
