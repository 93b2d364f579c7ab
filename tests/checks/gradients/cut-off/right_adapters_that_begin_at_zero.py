import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)


class Adapted(torch.nn.Module):
    """What comes down gets no gradient before what goes up has moved."""

    def __init__(self, features, outputs, rank=4) -> None:
        super().__init__()
        self.base = torch.nn.Linear(features, outputs).requires_grad_(False)
        self.down = torch.nn.Linear(features, rank, bias=False)
        self.up = torch.nn.Linear(rank, outputs, bias=False)
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, inputs):
        return self.base(inputs) + self.up(self.down(inputs))


model = torch.nn.Sequential(Adapted(16, 32), torch.nn.ReLU(), Adapted(32, 3))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for _ in range(4):
    for _ in range(16):
        inputs, labels = torch.randn(8, 16), torch.randint(3, (8,))
        (cross_entropy(model(inputs), labels) / 16).backward()
    optimizer.step()
    optimizer.zero_grad()
