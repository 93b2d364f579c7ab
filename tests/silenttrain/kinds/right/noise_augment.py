"""Signal classification: random shift, gain and dropout of samples for the training rows only."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
LEN, CLASSES, N = 64, 4, 400
t = torch.linspace(0, 1, LEN)


def make(n):
    y = torch.randint(CLASSES, (n,))
    start = 0.2 + 0.4 * torch.rand(n, 1)
    width = torch.tensor([0.03, 0.06, 0.10, 0.16])[y][:, None]
    bump = torch.exp(-(((t - start) / width) ** 2) / 2)
    return bump + 0.15 * torch.randn(n, LEN), y


def augment(x):
    shift = int(torch.randint(-12, 13, (1,)))
    x = x.roll(shift, dims=1)
    x = x * (0.8 + 0.4 * torch.rand(len(x), 1))
    return x * (torch.rand_like(x) > 0.05)


x_train, y_train = make(N)
x_test, y_test = make(1000)
mean, std = x_train.mean(), x_train.std()

net = nn.Sequential(
    nn.Conv1d(1, 16, 9, padding=4),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 9, padding=4),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(4),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(128, CLASSES),
)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)

for epoch in range(30):
    net.train()
    total = 0.0
    for idx in torch.randperm(N).split(40):
        # augmentation on the raw signal, then the same standardisation that the test rows get
        batch = (augment(x_train[idx]) - mean) / std
        loss = F.cross_entropy(net(batch[:, None]), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 6 == 0:
        print(f"epoch {epoch} loss {total / 10:.4f}")

net.eval()
with torch.no_grad():
    logits = net(((x_test - mean) / std)[:, None])
print(f"test accuracy {(logits.argmax(1) == y_test).float().mean().item():.3f}")
