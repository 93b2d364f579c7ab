# What stands several times in a list: an activation with one weight, and a head whose estimate the next layer is given.
import torch
from torch import nn

torch.manual_seed(0)


class Refiner(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.activations = nn.ModuleList([nn.PReLU()] * depth)
        self.heads = nn.ModuleList([nn.Linear(width, width)] * depth)

    def forward(self, states):
        states.div_(10)
        estimates = []
        for layer, activation, head in zip(self.layers, self.activations, self.heads, strict=True):
            states = activation(layer(states))
            estimates.append(head(states))
            states = states + estimates[-1]
        return torch.stack(estimates)


model = Refiner()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(6):
    inputs = 10 * torch.randn(32, 8)
    targets = inputs.sin()
    loss = nn.functional.mse_loss(model(inputs), targets.expand(3, -1, -1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
