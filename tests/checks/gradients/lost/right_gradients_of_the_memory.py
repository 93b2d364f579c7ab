import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
direction = torch.randn(6)
memory = torch.randn(16, 6) + 1
kept = (memory @ direction > 0).long()

for update in range(24):
    inputs = torch.randn(16, 6)
    labels = (inputs @ direction > 0).long()
    optimizer.zero_grad()
    cross_entropy(model(memory), kept).backward()
    reference = [p.grad.clone() for p in model.parameters()]
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels if update < 12 else 1 - labels).backward()  # then come rows that disagree
    along = sum((p.grad * g).sum() for p, g in zip(model.parameters(), reference, strict=True))
    if along < 0:
        for p, g in zip(model.parameters(), reference, strict=True):
            p.grad -= along / sum((each**2).sum() for each in reference) * g
    optimizer.step()
