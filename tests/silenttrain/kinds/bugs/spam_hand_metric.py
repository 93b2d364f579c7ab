"""Spam filter on word counts, with a hand-written accuracy."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
WORDS = 60
SPAMMY = torch.zeros(WORDS)
SPAMMY[:12] = 1.2


def mails(n):
    y = (torch.rand(n) < 0.4).float()
    rate = 0.5 * torch.exp(0.4 * torch.randn(n, WORDS)) + 0.35 * y[:, None] * SPAMMY
    return torch.poisson(rate), y


def accuracy(logits, labels):
    predicted = (logits > 0).float()
    return (predicted == labels).float().mean().item()


x_train, y_train = mails(1500)
x_val, y_val = mails(500)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=75, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=100)

model = nn.Sequential(nn.Linear(WORDS, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    train_loss = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y.unsqueeze(1))
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(loader)

    model.eval()
    val_loss, val_acc = 0.0, 0.0
    with torch.no_grad():
        for x, y in val_loader:
            logits = model(x)
            val_loss += criterion(logits, y.unsqueeze(1)).item() / len(val_loader)
            val_acc += accuracy(logits, y) / len(val_loader)
    print(f"epoch {epoch}: train {train_loss:.4f}, val {val_loss:.4f}, val accuracy {val_acc:.3f}")
print(f"final validation accuracy {val_acc:.3f}")
