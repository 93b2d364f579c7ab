import torch
from torch import nn

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, states):
        return states + self.inner(self.norm(states))


class Regressor(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.layers = nn.ModuleList([Residual(width)] * depth)
        self.last = nn.Linear(width, 1)

    def forward(self, inputs):
        states = self.first(inputs)
        for layer in self.layers:
            states = layer(states)
        return self.last(states)


model = Regressor()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(8):
    inputs = torch.randn(32, 4)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), inputs.prod(dim=1, keepdim=True)).backward()  # found
    optimizer.step()
