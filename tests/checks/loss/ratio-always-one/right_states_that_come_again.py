import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
seen = torch.randn(128, 4)

for updates in (1, 1, 4):
    with torch.no_grad():
        roll_out = Categorical(logits=policy(seen))
    action = roll_out.sample()
    gain = torch.where(action == (seen[:, 0] > 0).long(), 1.0, -1.0)
    before = roll_out.log_prob(action)
    for _ in range(updates):
        now = Categorical(logits=policy(seen)).log_prob(action)
        ratio = (now - before).exp()
        loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
