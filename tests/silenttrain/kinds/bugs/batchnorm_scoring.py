"""Classify spectra with a batch-normalised network, then score the stations one after the other."""

import torch
import torch.nn as nn

torch.manual_seed(0)
CLASSES, BANDS = 4, 16
templates = torch.randn(CLASSES, BANDS)


def spectra(labels):
    return templates[labels] + 0.7 * torch.randn(len(labels), BANDS)


train_y = torch.randint(CLASSES, (1500,))
train_x = spectra(train_y)
# test rows come station by station, and a station sees mostly one class
stations = []
for s in range(20):
    usual = torch.full((25,), s % CLASSES)
    other = torch.randint(CLASSES, (25,))
    y = torch.where(torch.rand(25) < 0.85, usual, other)
    stations.append((spectra(y), y))

model = nn.Sequential(
    nn.Linear(BANDS, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.Linear(32, CLASSES),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    total, correct = 0.0, 0
    for idx in torch.randperm(len(train_x)).split(100):
        logits = model(train_x[idx])
        loss = criterion(logits, train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
        correct += (logits.argmax(1) == train_y[idx]).sum().item()
    print(f"epoch {epoch}  loss {total / len(train_x):.4f}  accuracy {correct / len(train_x):.3f}")

hits, rows = 0, 0
with torch.no_grad():
    for x, y in stations:
        hits += (model(x).argmax(1) == y).sum().item()
        rows += len(y)
print(f"test accuracy {hits / rows:.3f} over {rows} spectra")
