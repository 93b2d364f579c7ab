import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows = torch.randn(200, 6)
labels = (rows.sum(1) > 0).long()
first, rest = torch.randperm(200)[:160], torch.arange(140, 200)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(3):
    for picked in torch.randperm(160).split(16):
        loss = cross_entropy(model(rows[first[picked]]), labels[first[picked]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = 0
    with torch.no_grad():
        for place in rest:
            right += int(model(rows[place][None]).argmax(1) == labels[place])  # found
    print(f"epoch {epoch}: {right / len(rest):.3f}")
