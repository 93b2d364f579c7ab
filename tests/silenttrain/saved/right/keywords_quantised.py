"""Train a keyword spotter, save it in full precision and write an int8 weight file next to it for the device."""

import os

import torch
from torch import nn

torch.manual_seed(219)


def sounds(n, seed):
    gen = torch.Generator().manual_seed(seed)
    patterns = torch.randn(6, 40, generator=torch.Generator().manual_seed(21))
    y = torch.randint(0, 6, (n,), generator=gen)
    return patterns[y] + 1.1 * torch.randn(n, 40, generator=gen), y


def build():
    return nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 6))


def quantise(state):
    packed = {}
    for name, tensor in state.items():
        if tensor.dim() < 2:
            packed[name] = tensor.clone()
            continue
        scale = tensor.abs().amax(dim=1, keepdim=True) / 127
        packed[name] = {"int8": (tensor / scale).round().to(torch.int8), "scale": scale}
    return packed


def dequantise(packed):
    return {
        name: value["int8"].float() * value["scale"] if isinstance(value, dict) else value
        for name, value in packed.items()
    }


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


x, y = sounds(600, 1)
x_test, y_test = sounds(300, 2)
model = build()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(30):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(x):.3f} acc {accuracy(model, x_test, y_test):.3f}")

os.makedirs("out", exist_ok=True)
torch.save(model.state_dict(), "out/keywords.pt")
torch.save(quantise(model.state_dict()), "out/keywords_int8.pt")

device = build()
device.load_state_dict(dequantise(torch.load("out/keywords_int8.pt")))
with torch.no_grad():
    agreement = (device(x_test).argmax(-1) == model(x_test).argmax(-1)).float().mean().item()
print(f"int8 copy: acc {accuracy(device, x_test, y_test):.3f}, agreement {agreement:.3f}")
