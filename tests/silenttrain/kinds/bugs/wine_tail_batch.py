"""Classify wines from chemical measurements kept in tensors, grouped by cultivar as in the source table."""

import torch
from torch import nn

torch.manual_seed(2)
BATCH, EPOCHS = 64, 18
COUNTS = [250, 210, 150, 25]


def table(counts, seed):
    g = torch.Generator().manual_seed(seed)
    centres = 1.6 * torch.randn(len(counts), 13, generator=torch.Generator().manual_seed(99))
    label = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return centres[label] + torch.randn(len(label), 13, generator=g), label


class WineNet(nn.Module):
    def __init__(self, n_features=13, n_classes=4):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, 48),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(48, n_classes),
        )

    def forward(self, x):
        return self.layers(x)


x_train, y_train = table(COUNTS, seed=1)
x_test, y_test = table([60, 60, 60, 60], seed=2)
mean, std = x_train.mean(0), x_train.std(0)
x_train, x_test = (x_train - mean) / std, (x_test - mean) / std

model = WineNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
n_batches = len(x_train) // BATCH
for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for b in torch.randperm(n_batches).tolist():
        xb = x_train[b * BATCH : (b + 1) * BATCH]
        yb = y_train[b * BATCH : (b + 1) * BATCH]
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch % 6 == 5:
        print(f"epoch {epoch + 1}: loss {running / n_batches:.4f}")

model.eval()
with torch.no_grad():
    hit = model(x_test).argmax(1) == y_test
per_class = [hit[y_test == c].float().mean().item() for c in range(4)]
print(f"test accuracy {hit.float().mean():.3f}, by cultivar {[round(v, 2) for v in per_class]}")
