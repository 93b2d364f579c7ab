import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as loss_of

torch.manual_seed(0)
generator = nn.Linear(4, 8)
judge = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
makes = torch.optim.Adam(generator.parameters(), lr=1e-3)
tells = torch.optim.Adam(judge.parameters(), lr=1e-3)
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)

for _ in range(20):
    made = generator(torch.randn(32, 4))
    judge.requires_grad_(False)
    loss = loss_of(judge(made), ones)
    makes.zero_grad()
    loss.backward()
    makes.step()
    judge.requires_grad_(True)
    loss = loss_of(judge(torch.randn(32, 8) + 1), ones) + loss_of(judge(made.detach()), zeros)
    tells.zero_grad()
    loss.backward()
    tells.step()
