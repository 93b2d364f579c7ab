import torch
from torch import nn


class Branches(nn.Module):
    def __init__(self, width, number):
        super().__init__()
        self.branches = [nn.Linear(width, width) for _ in range(number)]
        self.head = nn.Linear(width, 2)

    def forward(self, inputs):
        hidden = sum(torch.relu(branch(inputs)) for branch in self.branches)
        return self.head(hidden)


torch.manual_seed(0)
model = Branches(width=8, number=3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for _ in range(10):
    optimizer.zero_grad()
    inputs, labels = torch.randn(16, 8), torch.randint(2, (16,))
    nn.functional.cross_entropy(model(inputs), labels).backward()  # found
    optimizer.step()
