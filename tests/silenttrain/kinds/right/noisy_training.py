"""Keyword spotting on toy spectrograms with augmentation for the training rows only."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
WORDS, FREQ, TIME = 5, 12, 20
shapes = torch.randn(WORDS, FREQ, TIME).cumsum(2) * 0.3


def record(n):
    y = torch.randint(WORDS, (n,))
    x = shapes[y] + 1.5 * torch.randn(n, FREQ, TIME)
    shift = torch.randint(-2, 3, (n,))
    x = torch.stack([torch.roll(row, int(s), 1) for row, s in zip(x, shift)])
    return x, y


train_x, train_y = record(600)
test_x, test_y = record(400)
# per-frequency statistics of the training rows serve both sets
mean = train_x.mean((0, 2), keepdim=True)
std = train_x.std((0, 2), keepdim=True)
train_x, test_x = (train_x - mean) / std, (test_x - mean) / std


def augment(x):
    x = torch.roll(x, int(torch.randint(-3, 4, (1,))), 2)
    x = x * (0.7 + 0.6 * torch.rand(len(x), 1, 1)) + 0.5 * torch.randn_like(x)
    f = int(torch.randint(FREQ - 2, (1,)))
    t = int(torch.randint(TIME - 4, (1,)))
    x[:, f : f + 2, :] = 0
    x[:, :, t : t + 4] = 0
    return x


model = nn.Sequential(
    nn.Conv1d(FREQ, 32, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(320, WORDS),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)

for epoch in range(15):
    model.train()
    hits, total = 0, 0.0
    for idx in torch.randperm(len(train_x)).split(50):
        logits = model(augment(train_x[idx]))
        loss = F.cross_entropy(logits, train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
        hits += (logits.argmax(1) == train_y[idx]).sum().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch}  loss {total / 600:.4f}  accuracy (augmented) {hits / 600:.3f}")

model.eval()
with torch.no_grad():
    acc = (model(test_x).argmax(1) == test_y).float().mean().item()
print(f"test accuracy {acc:.3f}")
