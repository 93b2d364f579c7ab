# Deep supervision: one head reads the output of every layer, and is listed once for each.
import torch
from torch import nn

torch.manual_seed(0)


class Refiner(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(depth)])
        head = nn.Linear(width, width)
        self.heads = nn.ModuleList([head for _ in range(depth)])

    def forward(self, states):
        outputs = []
        for layer, head in zip(self.layers, self.heads, strict=True):
            states = layer(states)
            outputs.append(head(states))
        return torch.stack(outputs)


model = Refiner()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(8):
    inputs = torch.randn(32, 8)
    outputs = model(inputs)
    optimizer.zero_grad()
    nn.functional.mse_loss(outputs, inputs.sin().expand_as(outputs)).backward()
    optimizer.step()
