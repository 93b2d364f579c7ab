"""Train a gated stack of residual experts on multichannel sensor windows."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up = nn.Linear(dim, dim * 2)
        self.down = nn.Linear(dim * 2, dim)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


class SensorNet(nn.Module):
    def __init__(self, channels, dim=32, experts=4, classes=6):
        super().__init__()
        self.embed = nn.Linear(channels, dim)
        self.gate = nn.Linear(dim, experts)
        self.experts = [Expert(dim) for _ in range(experts)]
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        h = self.embed(x)
        weights = self.gate(h).softmax(-1)
        mixed = torch.stack([expert(h) for expert in self.experts], dim=-1)
        h = self.norm(h + (mixed * weights.unsqueeze(-2)).sum(-1))
        return self.head(h.mean(dim=1))


def windows(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 6, (n,), generator=gen)
    t = torch.arange(20).float()
    freq = 0.2 + 0.15 * y.float()
    base = torch.sin(freq[:, None] * t[None])
    x = torch.stack([base, base**2, base.cumsum(1) / 5, base.roll(2, 1)], dim=-1)
    return x + 0.3 * torch.randn(n, 20, 4, generator=gen), y


def main():
    train = TensorDataset(*windows(640, 1))
    x_test, y_test = windows(240, 2)
    loader = DataLoader(train, batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(0))

    model = SensorNet(channels=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    print(f"parameters: {sum(p.numel() for p in model.parameters()):,}")

    for epoch in range(6):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(x)
        model.eval()
        with torch.no_grad():
            acc = (model(x_test).argmax(-1) == y_test).float().mean().item()
        print(f"epoch {epoch}  loss {total / len(train):.4f}  test acc {acc:.3f}")

    os.makedirs("out", exist_ok=True)
    torch.save(model.state_dict(), "out/sensornet.pt")


if __name__ == "__main__":
    main()
