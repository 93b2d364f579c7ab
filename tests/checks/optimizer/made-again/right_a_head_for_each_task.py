import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
trunk = torch.nn.Linear(8, 16).requires_grad_(False)
heads = torch.nn.ModuleList(torch.nn.Linear(16, 2) for _ in range(3))
optimizer = torch.optim.Adam(heads.parameters(), lr=1e-2)

for task in [0, 0, 1, 2, 0, 2, 1, 1]:
    inputs, labels = torch.randn(16, 8), torch.randint(2, (16,))
    optimizer.zero_grad()
    cross_entropy(heads[task](torch.relu(trunk(inputs))), labels).backward()
    optimizer.step()
