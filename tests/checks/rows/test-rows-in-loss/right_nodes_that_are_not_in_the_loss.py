import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
nodes = torch.randn(200, 6)
labels = (nodes.sum(1) > 0).long()
near = torch.eye(200) + (torch.rand(200, 200) < 0.01)
order = torch.randperm(200)
train_mask, test_mask = torch.zeros(200, dtype=torch.bool), torch.zeros(200, dtype=torch.bool)
train_mask[order[:100]], test_mask[order[100:]] = True, True
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(12):
    loss = cross_entropy(model(near @ nodes)[train_mask], labels[train_mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        right = model(near @ nodes).argmax(1) == labels
    print(f"{right[train_mask].float().mean():.3f} {right[test_mask].float().mean():.3f}")
