import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows = torch.randn(200, 6)
labels = (rows.sum(1) > 0).long()
first, rest = torch.arange(140), torch.arange(140, 200)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(3):
    for picked in torch.randperm(140).split(14):
        loss = cross_entropy(model(rows[first[picked]]), labels[first[picked]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for part in (first[:40], rest):
        with torch.no_grad():
            right = sum(int(model(rows[place][None]).argmax(1) == labels[place]) for place in part)
        print(f"epoch {epoch}: {right / len(part):.3f}")
