import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(6):
    inputs, labels = torch.randn(4, 10, 8), torch.randint(2, (4, 10))
    labels[torch.randint(4, ())] = -100
    for rows, targets in zip(inputs, labels, strict=True):
        loss = cross_entropy(model(rows), targets, ignore_index=-100, reduction="sum")
        (loss / (labels != -100).sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
