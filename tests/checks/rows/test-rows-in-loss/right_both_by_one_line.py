import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows = torch.randn(200, 6)
labels = (rows.sum(1) > 0).long()
train_rows, test_rows = rows[:150], rows[150:]
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def accuracy(given, true):
    with torch.no_grad():
        return sum(int(model(row[None]).argmax(1) == label) for row, label in zip(given, true, strict=True)) / len(true)


for epoch in range(3):
    for picked in torch.randperm(150).split(15):
        loss = cross_entropy(model(train_rows[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scores = [accuracy(given, true) for given, true in ((train_rows[:90], labels[:90]), (test_rows, labels[150:]))]
    print(f"epoch {epoch}: {scores}")
