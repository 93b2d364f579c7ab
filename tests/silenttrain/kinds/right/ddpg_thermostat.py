"""DDPG with Polyak-averaged targets that keeps a room at the wanted temperature."""

import copy

import torch
from torch import nn

torch.manual_seed(2)


def mlp(n_in, n_out, *last):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_out), *last)


class Room:
    def __init__(self, n):
        self.n = n
        self.reset()

    def reset(self):
        self.temp = 2 * torch.randn(self.n)
        self.outside = -1.0 + torch.randn(self.n)
        return self.observe()

    def observe(self):
        return torch.stack([self.temp, self.outside], dim=1)

    def step(self, heat):
        heat = heat.squeeze(1)
        self.temp = self.temp + 0.1 * (self.outside - self.temp) + 0.5 * heat + 0.02 * torch.randn(self.n)
        return self.observe(), -(self.temp.abs()) - 0.05 * heat.abs()


class Agent:
    def __init__(self, gamma=0.9, tau=0.05):
        self.actor, self.critic = mlp(2, 1, nn.Tanh()), mlp(3, 1)
        self.actor_t, self.critic_t = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=2e-3)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=4e-3)
        self.gamma, self.tau = gamma, tau

    def q(self, net, obs, act):
        return net(torch.cat([obs, act], dim=1)).squeeze(1)

    def learn(self, obs, act, rew, nxt):
        with torch.no_grad():
            goal = rew + self.gamma * self.q(self.critic_t, nxt, self.actor_t(nxt))
        loss_c = (self.q(self.critic, obs, act) - goal).pow(2).mean()
        self.opt_c.zero_grad()
        loss_c.backward()
        self.opt_c.step()

        loss_a = -self.q(self.critic, obs, self.actor(obs)).mean()
        self.opt_a.zero_grad()
        loss_a.backward()
        self.opt_a.step()
        self.polyak(self.actor_t, self.actor)
        self.polyak(self.critic_t, self.critic)
        return loss_c.item()

    @torch.no_grad()
    def polyak(self, target, source):
        for t, s in zip(target.parameters(), source.parameters(), strict=True):
            t.lerp_(s, self.tau)


room, agent, memory = Room(64), Agent(), []
obs = room.reset()
for it in range(160):
    with torch.no_grad():
        act = (agent.actor(obs) + 0.4 * torch.randn(64, 1)).clamp(-1, 1)
    nxt, rew = room.step(act)
    memory.append((obs, act, rew, nxt))
    obs = room.reset() if it % 15 == 14 else nxt
    batch = [torch.cat(c) for c in zip(*memory, strict=True)]
    rows = torch.randint(0, len(batch[0]), (256,))
    loss = agent.learn(*[b[rows] for b in batch])
    if it % 40 == 0:
        print(f"{it:3d} critic loss {loss:.4f}")

test = Room(300)
obs, total = test.observe(), torch.zeros(300)
with torch.no_grad():
    for _ in range(30):
        obs, rew = test.step(agent.actor(obs))
        total += rew
print(f"mean return {total.mean():.3f}, mean |error| at the end {test.temp.abs().mean():.3f}")
