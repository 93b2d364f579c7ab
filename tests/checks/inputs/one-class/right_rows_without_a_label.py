import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
points = torch.randn(96, 5)
labels = (points[:, 0] > points[:, 1]).long()
labels[torch.rand(96) < 0.7] = -100  # nobody has labelled these

model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(2):
    for batch, targets in DataLoader(TensorDataset(points, labels), batch_size=24, shuffle=True):
        logits = model(batch)
        disagreement = (logits - model(batch + 0.1 * torch.randn_like(batch))).pow(2).mean()
        optimizer.zero_grad()
        (cross_entropy(logits, targets) + 0.1 * disagreement).backward()
        optimizer.step()
