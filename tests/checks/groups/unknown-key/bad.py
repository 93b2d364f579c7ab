import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
backbone = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.GELU())
head = torch.nn.Linear(32, 4)
groups = [
    {"params": backbone.parameters(), "learning_rate": 1e-5},
    {"params": head.parameters()},
]
optimizer = torch.optim.AdamW(groups, lr=1e-3)  # found

for _ in range(10):
    inputs, labels = torch.randn(16, 20), torch.randint(4, (16,))
    optimizer.zero_grad()
    cross_entropy(head(backbone(inputs)), labels).backward()
    optimizer.step()
