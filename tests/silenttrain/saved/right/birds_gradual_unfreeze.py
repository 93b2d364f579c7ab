"""Fine-tune a pretrained bird-sound network from the top down, adding one group of layers per stage."""

import os

import torch
from torch import nn

torch.manual_seed(201)


class AudioNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv1d(1, 16, 5, stride=2, padding=2), nn.ReLU())
        self.block2 = nn.Sequential(nn.Conv1d(16, 24, 5, stride=2, padding=2), nn.ReLU())
        self.block3 = nn.Sequential(nn.Conv1d(24, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(4))
        self.fc = nn.Linear(128, classes)

    def forward(self, x):
        return self.fc(self.block3(self.block2(self.block1(x))).flatten(1))


def calls(n, classes, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=gen)
    t = torch.linspace(0, 6.28, 64)
    phase = 6.28 * torch.rand(n, 1, generator=gen)
    x = torch.sin((2 + 1.5 * y[:, None]) * t + phase) + 0.5 * torch.randn(n, 64, generator=gen)
    return x.unsqueeze(1), y


def epoch_loss(model, optimizer, x, y):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(32):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


os.makedirs("out", exist_ok=True)
pretrained = AudioNet(classes=3)
x, y = calls(300, 3, seed=1)
opt = torch.optim.Adam(pretrained.parameters(), lr=2e-3)
for _ in range(2):
    epoch_loss(pretrained, opt, x, y)
torch.save(pretrained.state_dict(), "out/pretrained.pt")

model = AudioNet(classes=3)
model.load_state_dict(torch.load("out/pretrained.pt"))
model.fc = nn.Linear(128, 6)
model.requires_grad_(False)
model.fc.requires_grad_(True)
optimizer = torch.optim.AdamW(model.fc.parameters(), lr=5e-3)

x_train, y_train = calls(400, 6, seed=2)
x_test, y_test = calls(200, 6, seed=3)
stages = [None, model.block3, model.block2, model.block1]
for stage, module in enumerate(stages):
    if module is not None:
        module.requires_grad_(True)
        optimizer.add_param_group({"params": list(module.parameters()), "lr": 3e-3 / stage})
    for _ in range(2):
        loss = epoch_loss(model, optimizer, x_train, y_train)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"stage {stage}: trainable {trainable}, loss {loss:.3f}, acc {accuracy(model, x_test, y_test):.3f}")

torch.save(model.state_dict(), "out/birds.pt")
