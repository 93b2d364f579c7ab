import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(8):
    inputs, labels = torch.randn(16, 4), torch.randint(2, (16,))
    loss = cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()  # found
