"""REINFORCE with a learned baseline: stop a car inside the parking bay."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
CARS, STEPS = 128, 12


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 3))
        self.baseline = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, s):
        return Categorical(logits=self.policy(s)), self.baseline(s).squeeze(1)


def drive(agent, greedy=False):
    x, v = -1.5 + 0.5 * torch.rand(CARS), 0.3 * torch.rand(CARS)
    log_probs, values, rewards, entropy = [], [], [], 0.0
    for t in range(STEPS):
        s = torch.stack([x, v, torch.full_like(x, 1 - t / STEPS)], dim=1)
        dist, value = agent(s)
        action = dist.probs.argmax(1) if greedy else dist.sample()
        v = (v + 0.1 * (action - 1)).clamp(-0.5, 0.5)
        x = x + v
        log_probs.append(dist.log_prob(action))
        values.append(value)
        rewards.append(-0.05 * x.abs())
        entropy = entropy + dist.entropy().mean() / STEPS
    rewards[-1] = rewards[-1] - x.abs() - v.abs()
    parked = ((x.abs() < 0.25) & (v.abs() < 0.15)).float().mean()
    return torch.stack(log_probs), torch.stack(values), torch.stack(rewards), entropy, parked


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
for it in range(100):
    log_probs, values, rewards, entropy, parked = drive(agent)
    returns = rewards.flip(0).cumsum(0).flip(0)
    advantage = (returns - values).detach()
    policy_loss = -(log_probs * advantage).mean()
    value_loss = nn.functional.mse_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.005 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 20 == 0:
        print(f"{it:3d} return {returns[0].mean():.3f} value loss {value_loss.item():.4f} parked {parked:.2f}")

with torch.no_grad():
    _, _, rewards, _, parked = drive(agent, greedy=True)
print(f"greedy return {rewards.sum(0).mean():.3f}, parked {parked:.3f}")
