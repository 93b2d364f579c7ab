import torch
from torch import nn

torch.manual_seed(0)
critic, actor = nn.Linear(4, 1), nn.Sequential(nn.Linear(3, 1), nn.Tanh())
updates_critic = torch.optim.Adam(critic.parameters(), lr=1e-2)
updates_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)

for _ in range(8):
    states, actions = torch.randn(32, 3), torch.rand(32, 1)
    rewards = -((actions - states[:, :1]) ** 2)
    updates_actor.zero_grad()
    (-critic(torch.cat([states, actor(states)], 1)).mean()).backward()
    updates_critic.zero_grad()
    nn.functional.mse_loss(critic(torch.cat([states, actions], 1)), rewards).backward()
    updates_actor.step()
    updates_critic.step()
