import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows = torch.randn(300, 6)
labels = (rows.sum(1) > 0).long()
folds = torch.randperm(300).split(60)

for fold in range(5):
    train_rows = torch.cat([each for other, each in enumerate(folds) if other != 0])
    test_rows = folds[fold]
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for picked in train_rows.split(24):
        loss = cross_entropy(model(rows[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(rows[test_rows]).argmax(1) == labels[test_rows]).float().mean()  # found
    print(f"fold {fold}: {right:.3f}")
