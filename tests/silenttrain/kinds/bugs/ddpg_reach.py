"""DDPG agent that steers a point mass to the origin."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(i, o, out=None):
    layers = [nn.Linear(i, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, o)]
    return nn.Sequential(*layers, *([out] if out else []))


class PointMass:
    def reset(self, n):
        self.x = torch.randn(n, 1)
        self.v = torch.zeros(n, 1)
        return torch.cat([self.x, self.v], 1)

    def step(self, a):
        self.v = 0.9 * self.v + 0.2 * a
        self.x = self.x + 0.3 * self.v
        reward = -(self.x**2 + 0.05 * a**2)
        return torch.cat([self.x, self.v], 1), reward.clamp(min=-5.0)


class DDPG:
    def __init__(self, obs_dim=2, act_dim=1, gamma=0.95, tau=0.005):
        self.actor = mlp(obs_dim, act_dim, nn.Tanh())
        self.critic = mlp(obs_dim + act_dim, 1)
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=5e-4)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3)
        self.gamma, self.tau = gamma, tau

    def act(self, s, noise=0.0):
        with torch.no_grad():
            a = self.actor(s)
        return (a + noise * torch.randn_like(a)).clamp(-1, 1)

    def update(self, s, a, r, s2):
        with torch.no_grad():
            q_next = self.critic_target(torch.cat([s2, self.actor_target(s2)], 1))
            y = r + self.gamma * q_next
        critic_loss = F.mse_loss(self.critic(torch.cat([s, a], 1)), y)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        actor_loss = -self.critic(torch.cat([s, self.actor(s)], 1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        self.soft_update(self.actor, self.actor_target)
        self.soft_update(self.critic, self.critic_target)
        return critic_loss.item()

    @torch.no_grad()
    def soft_update(self, net, target):
        for p, tp in zip(net.parameters(), target.parameters()):
            tp.copy_(self.tau * tp + (1 - self.tau) * p)


def evaluate(agent):
    env = PointMass()
    s, total = env.reset(200), 0.0
    for _ in range(30):
        s, r = env.step(agent.act(s))
        total += r.mean().item()
    return total


torch.manual_seed(1)
agent, env = DDPG(), PointMass()
store = [torch.empty(0, k) for k in (2, 1, 1, 2)]
print(f"return before training {evaluate(agent):.2f}")
for episode in range(25):
    s = env.reset(16)
    for _ in range(30):
        a = agent.act(s, noise=0.3)
        s2, r = env.step(a)
        store = [torch.cat([old, new])[-8000:] for old, new in zip(store, (s, a, r, s2))]
        s = s2
        idx = torch.randint(len(store[0]), (64,))
        loss = agent.update(*(x[idx] for x in store))
    if episode % 8 == 0:
        print(f"episode {episode} critic loss {loss:.4f} return {evaluate(agent):.2f}")
print(f"final return {evaluate(agent):.2f}")
