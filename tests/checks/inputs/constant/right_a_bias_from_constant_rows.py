import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
step = torch.arange(64.0).unsqueeze(1)
loader = DataLoader(TensorDataset(torch.ones(64, 3), step, 2 * step + torch.randn(64, 1)), batch_size=8, shuffle=True)


class Trend(torch.nn.Module):
    """One of its inputs is the same for all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.level, self.slope = torch.nn.Linear(3, 1, bias=False), torch.nn.Linear(1, 1, bias=False)

    def forward(self, ones, step):
        return self.level(ones) + self.slope(step)


model = Trend()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-1)
for _ in range(3):
    for ones, step, values in loader:
        optimizer.zero_grad()
        mse_loss(model(ones, step), values).backward()
        optimizer.step()
