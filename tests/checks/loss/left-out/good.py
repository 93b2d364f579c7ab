import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

torch.manual_seed(0)


class Pump(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.fault, self.life = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, inputs):
        hidden = self.trunk(inputs)
        return self.fault(hidden), self.life(hidden).squeeze(1)


model = Pump()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for _ in range(20):
    inputs = torch.randn(32, 8)
    fault, life = model(inputs)
    fault_loss = cross_entropy(fault, inputs[:, :3].argmax(1))
    life_loss = mse_loss(life, inputs.sum(1))
    loss = fault_loss + life_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
