import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

torch.manual_seed(0)
age, fare = torch.randint(1, 40, (600, 1)).float(), torch.randint(1, 6, (600, 1)).float() * 3.25
of = torch.cat([age, fare, torch.randint(0, 2, (600, 2)).float(), torch.randint(1, 4, (600, 1)).float()], 1)
survived = (of[:, :1] < 20).float()
rows = (of - of.mean(0)) / of.std(0)
order = torch.randperm(600)
train, test = order[:480], order[480:]
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(20):
    optimizer.zero_grad()
    binary_cross_entropy_with_logits(model(rows[train]), survived[train]).backward()
    optimizer.step()
    with torch.no_grad():
        loss = binary_cross_entropy_with_logits(model(rows[test]), survived[test]).item()
    print(f"epoch {epoch}: {loss:.4f}")
