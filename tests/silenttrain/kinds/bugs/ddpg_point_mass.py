"""DDPG: push a point mass to the origin (double integrator)."""

import copy

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(1)
DT, GAMMA, TAU = 0.2, 0.9, 0.05


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh())

    def forward(self, obs):
        return self.net(obs)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, obs, act):
        return self.net(torch.cat([obs, act], dim=1)).squeeze(1)


def dynamics(obs, act):
    x, v = obs[:, :1], obs[:, 1:]
    v = (v + DT * act).clamp(-2, 2)
    x = (x + DT * v).clamp(-3, 3)
    cost = x.pow(2) + 0.1 * v.pow(2) + 0.01 * act.pow(2)
    return torch.cat([x, v], dim=1), -cost.squeeze(1)


@torch.no_grad()
def soft_update(target, source, tau):
    for t, s in zip(target.parameters(), source.parameters(), strict=True):
        t.mul_(tau).add_(s, alpha=1 - tau)


actor, critic = Actor(), Critic()
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=3e-3)

memory = []
obs = torch.randn(64, 2)
for it in range(180):
    with torch.no_grad():
        act = (actor(obs) + 0.3 * torch.randn(64, 1)).clamp(-1, 1)
    nxt, rew = dynamics(obs, act)
    memory.append((obs, act, rew, nxt))
    obs = torch.randn(64, 2) if it % 20 == 19 else nxt

    o, a, r, o2 = (torch.cat(col) for col in zip(*memory[-90:], strict=True))
    pick = torch.randint(0, len(o), (256,))
    o, a, r, o2 = o[pick], a[pick], r[pick], o2[pick]
    with torch.no_grad():
        y = r + GAMMA * critic_target(o2, actor_target(o2))
    critic_loss = functional.mse_loss(critic(o, a), y)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    actor_loss = -critic(o, actor(o)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()

    soft_update(critic_target, critic, TAU)
    soft_update(actor_target, actor, TAU)
    if it % 45 == 0:
        print(f"iter {it:3d}  critic {critic_loss.item():8.4f}  actor {actor_loss.item():8.4f}")

with torch.no_grad():
    torch.manual_seed(99)
    obs, ret = torch.randn(256, 2), torch.zeros(256)
    for _ in range(40):
        obs, rew = dynamics(obs, actor(obs))
        ret += rew
print(f"mean return {ret.mean():.3f}, final distance {obs[:, 0].abs().mean():.3f}")
