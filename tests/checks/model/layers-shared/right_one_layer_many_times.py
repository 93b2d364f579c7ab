# A recurrent stack shares the weights of its layers and says so: one layer, called in a loop. Its towers share too.
import torch
from torch import nn

torch.manual_seed(0)


class Tower(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(width, nhead=2, dim_feedforward=16, batch_first=True)

    def forward(self, states):
        for _ in range(3):
            states = self.layer(states)
        return states


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        tower = Tower()
        self.towers = nn.ModuleList([tower, tower])

    def forward(self, one, other):
        left, right = (tower(each).mean(dim=1) for tower, each in zip(self.towers, (one, other), strict=True))
        return nn.functional.cosine_similarity(left, right)


model = Pairs()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(8):
    one, same = torch.randn(16, 5, 8), torch.rand(16) < 0.5
    other = torch.where(same[:, None, None], one + 0.1 * torch.randn(16, 5, 8), torch.randn(16, 5, 8))
    optimizer.zero_grad()
    nn.functional.mse_loss(model(one, other), same.float()).backward()
    optimizer.step()
