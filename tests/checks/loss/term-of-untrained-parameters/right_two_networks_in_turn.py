import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

torch.manual_seed(0)
generator, judge = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
makes = torch.optim.Adam(generator.parameters(), lr=1e-3)
tells = torch.optim.Adam(judge.parameters(), lr=1e-3)
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)

for _ in range(20):
    noise = torch.randn(32, 4)
    real = noise[:, :2] + 1
    made = generator(noise)
    loss = mse_loss(made, real) + 0.1 * binary_cross_entropy_with_logits(judge(made), ones)
    makes.zero_grad()
    loss.backward()
    makes.step()
    right = binary_cross_entropy_with_logits(judge(real), ones)
    wrong = binary_cross_entropy_with_logits(judge(made.detach()), zeros)
    tells.zero_grad()
    (right + wrong).backward()
    tells.step()
