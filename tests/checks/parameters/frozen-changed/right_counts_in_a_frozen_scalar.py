import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)


class Counted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.temperature = torch.nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, rows):
        self.temperature.mul_(0.99)
        return self.layer(rows) / self.temperature


model = Counted()
optimizer = torch.optim.SGD(model.layer.parameters(), lr=0.01)
for _ in range(10):
    rows = torch.randn(16, 4)
    optimizer.zero_grad()
    mse_loss(model(rows), rows.sum(dim=1, keepdim=True)).backward()
    optimizer.step()
