"""Soft actor-critic with twin critics on a one-step-lag regulator."""

import copy

import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional

torch.manual_seed(5)
GAMMA, TAU, ALPHA = 0.9, 0.05, 0.05


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
        self.q2 = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, s, a):
        z = torch.cat([s, a], dim=1)
        return self.q1(z).squeeze(1), self.q2(z).squeeze(1)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, s):
        mean, log_std = self.net(s).chunk(2, dim=1)
        dist = Normal(mean, log_std.clamp(-4, 1).exp())
        raw = dist.rsample()
        act = raw.tanh()
        logp = dist.log_prob(raw) - torch.log(1 - act.pow(2) + 1e-6)
        return act, logp.squeeze(1), mean.tanh()


def plant(s, a):
    level, lag = s[:, :1], s[:, 1:]
    lag = 0.5 * lag + 0.5 * a
    level = (level + 0.3 * lag).clamp(-3, 3)
    return torch.cat([level, lag], dim=1), -level.abs().squeeze(1)


actor, critic = Actor(), Critic()
critic_target = copy.deepcopy(critic).requires_grad_(False)
actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=5e-3)
s, pool = torch.randn(64, 2), []
for it in range(150):
    with torch.no_grad():
        a = actor(s)[0]
    s2, r = plant(s, a)
    pool.append((s, a, r, s2))
    s = torch.randn(64, 2) if it % 15 == 14 else s2
    S, A, R, S2 = (torch.cat(c) for c in zip(*pool, strict=True))
    k = torch.randint(0, len(S), (256,))
    with torch.no_grad():
        a2, logp2, _ = actor(S2[k])
        y = R[k] + GAMMA * (torch.min(*critic_target(S2[k], a2)) - ALPHA * logp2)
    q1, q2 = critic(S[k], A[k])
    critic_loss = functional.mse_loss(q1, y) + functional.mse_loss(q2, y)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    critic.requires_grad_(False)
    act, logp, _ = actor(S[k])
    actor_loss = (ALPHA * logp - torch.min(*critic(S[k], act))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic.requires_grad_(True)
    with torch.no_grad():
        for t, p in zip(critic_target.parameters(), critic.parameters(), strict=True):
            t.copy_(TAU * p + (1 - TAU) * t)
    if it % 30 == 0:
        print(f"{it:3d}  critic {critic_loss.item():.4f}  actor {actor_loss.item():.4f}")

with torch.no_grad():
    s, total = torch.randn(300, 2), torch.zeros(300)
    for _ in range(30):
        s, r = plant(s, actor(s)[2])
        total += r
print(f"return {total.mean():.3f}, |level| at the end {s[:, 0].abs().mean():.3f}")
