import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(8):
    inputs, labels = torch.randn(16, 6), torch.randint(2, (16,))
    change = torch.zeros_like(inputs, requires_grad=True)
    cross_entropy(model(inputs + change), labels).backward()
    optimizer.zero_grad()
    cross_entropy(model(inputs + 0.1 * change.grad.sign()), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
