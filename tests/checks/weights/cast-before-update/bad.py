import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows, labels = torch.randn(96, 6), torch.randint(2, (96,))
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for picked in torch.randperm(96).split(12):
            loss = cross_entropy(model(rows[picked]), labels[picked])  # found
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
