import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(20, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=20)  # found

for _ in range(10):
    inputs, labels = torch.randn(16, 20), torch.randint(3, (16,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()
