import torch
from torch.nn.functional import cross_entropy

LR, DECAY = 0.1, 0.01

torch.manual_seed(0)
model = torch.nn.Linear(10, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=LR)

for _ in range(10):
    inputs, labels = torch.randn(32, 10), torch.randint(4, (32,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()  # found
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 - LR * DECAY)
