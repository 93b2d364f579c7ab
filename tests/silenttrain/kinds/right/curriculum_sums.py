"""Curriculum: rows are sorted by difficulty, training begins with the easy ones and ends with all of them."""

import torch
from torch import nn

torch.manual_seed(0)
ROWS, LENGTH, EPOCHS, BATCH = 1500, 12, 16, 125


def sequences(n):
    steps = torch.randint(2, LENGTH + 1, (n,))
    value = torch.rand(n, LENGTH)
    marker = torch.zeros(n, LENGTH)
    marker[:, 0] = 1
    marker[torch.arange(n), steps - 1] = 1
    mask = torch.arange(LENGTH)[None] < steps[:, None]
    total = (value * marker).sum(1)
    return torch.stack([value * mask, marker], dim=2), total, steps


class AddingGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 48, batch_first=True)
        self.out = nn.Linear(48, 1)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.out(h[:, -1]).squeeze(1)


def competence(epoch):
    return min(1.0, 0.3 + 0.7 * epoch / (EPOCHS // 2))


x, y, steps = sequences(ROWS)
by_length = steps.argsort(stable=True)
x_test, y_test, _ = sequences(400)
model = AddingGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
for epoch in range(EPOCHS):
    usable = by_length[: int(competence(epoch) * ROWS)]
    usable = usable[torch.randperm(len(usable))]
    for start in range(0, len(usable), BATCH):
        rows = usable[start : start + BATCH]
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: {len(usable)} rows up to length {steps[usable].max()}, loss {loss.item():.4f}")

with torch.no_grad():
    error = (model(x_test) - y_test).pow(2).mean()
print(f"test mse {error:.4f} (variance of the sums {y_test.var():.4f})")
