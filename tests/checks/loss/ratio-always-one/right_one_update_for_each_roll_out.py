import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)

for _ in range(12):
    seen = torch.randn(128, 4)
    says = Categorical(logits=policy(seen))
    action = says.sample()
    gain = torch.where(action == (seen[:, 0] > 0).long(), 1.0, -1.0)
    now = says.log_prob(action)
    ratio = (now - now.detach()).exp()  # 1, with the gradient of now
    loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
