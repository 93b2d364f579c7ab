"""Train a seismic event detector, evaluate its weight average and keep the best average."""

import os

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(205)


def traces(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=gen)
    t = torch.arange(40).float()
    onset = 10 + 10 * torch.rand(n, 1, generator=gen)
    decay = torch.exp(-(t - onset).clamp(min=0) / (2 + 4 * y[:, None])) * (t >= onset)
    return (1.6 * decay + 0.5 * torch.randn(n, 40, generator=gen)).unsqueeze(1), y


def build():
    return nn.Sequential(
        nn.Conv1d(1, 16, 5, padding=2),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(16, 24, 5, padding=2),
        nn.BatchNorm1d(24),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(5),
        nn.Flatten(),
        nn.Linear(120, 3),
    )


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


def main():
    x, y = traces(480, 1)
    x_val, y_val = traces(300, 2)
    model = build()
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95), use_buffers=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
    os.makedirs("out", exist_ok=True)
    best = -1.0
    for epoch in range(9):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update_parameters(model)
            total += loss.item() * len(idx)
        raw, averaged = accuracy(model, x_val, y_val), accuracy(ema, x_val, y_val)
        print(f"epoch {epoch} loss {total / len(x):.3f} raw acc {raw:.3f} ema acc {averaged:.3f}")
        if averaged > best:
            best = averaged
            torch.save(ema.module.state_dict(), "out/detector.pt")

    deployed = build()
    deployed.load_state_dict(torch.load("out/detector.pt"))
    print(f"best ema acc {best:.3f}, deployed acc {accuracy(deployed, x_val, y_val):.3f}")


if __name__ == "__main__":
    main()
