"""PPO on a vectorised cart-pole written in torch."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(4)
ENVS, STEPS, GAMMA, LAM, CLIP = 32, 64, 0.98, 0.95, 0.2


def physics(s, a):
    x, v, th, w = s.unbind(1)
    force = torch.where(a == 1, 10.0, -10.0)
    tmp = (force + 0.05 * w**2 * th.sin()) / 1.1
    acc = (9.8 * th.sin() - th.cos() * tmp) / (0.5 * (4 / 3 - 0.1 * th.cos() ** 2 / 1.1))
    xacc = tmp - 0.05 * acc * th.cos() / 1.1
    s = torch.stack([x + 0.02 * v, v + 0.02 * xacc, th + 0.02 * w, w + 0.02 * acc], dim=1)
    return s, (s[:, 0].abs() > 2.4) | (s[:, 2].abs() > 0.21)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        self.v = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, s):
        return Categorical(logits=self.pi(s)), self.v(s).squeeze(-1)


class PPO:
    def __init__(self):
        self.net = ActorCritic()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.state = 0.05 * torch.randn(ENVS, 4)

    @torch.no_grad()
    def rollout(self):
        rows = []
        for _ in range(STEPS):
            dist, value = self.net(self.state)
            act = dist.sample()
            nxt, done = physics(self.state, act)
            rows.append((self.state, act, value, torch.ones(ENVS), done.float()))
            self.state = torch.where(done[:, None], 0.05 * torch.randn(ENVS, 4), nxt)
        obs, act, val, rew, done = (torch.stack(c) for c in zip(*rows, strict=True))
        adv, last, nxt_val = torch.zeros_like(rew), torch.zeros(ENVS), self.net(self.state)[1]
        for t in reversed(range(STEPS)):
            delta = rew[t] + GAMMA * nxt_val * (1 - done[t]) - val[t]
            last = delta + GAMMA * LAM * (1 - done[t]) * last
            adv[t], nxt_val = last, val[t]
        return obs.flatten(0, 1), act.flatten(), adv.flatten(), (adv + val).flatten(), done.mean()

    def update(self, obs, act, adv, ret):
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(4):
            for idx in torch.randperm(len(obs)).chunk(4):
                dist, value = self.net(obs[idx])
                log_prob = dist.log_prob(act[idx])
                old_log_prob = log_prob.detach()
                ratio = torch.exp(log_prob - old_log_prob)
                clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
                policy_loss = -torch.min(ratio * adv[idx], clipped * adv[idx]).mean()
                loss = policy_loss + 0.005 * (value - ret[idx]).pow(2).mean() - 0.01 * dist.entropy().mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()


agent = PPO()
for it in range(12):
    obs, act, adv, ret, fail = agent.rollout()
    agent.update(obs, act, adv, ret)
    print(f"iteration {it:2d}  mean episode length {1 / max(fail.item(), 1e-3):.1f}")

with torch.no_grad():
    s, alive, length = 0.05 * torch.randn(200, 4), torch.ones(200, dtype=torch.bool), torch.zeros(200)
    for _ in range(300):
        s, done = physics(s, agent.net(s)[0].probs.argmax(1))
        alive &= ~done
        length += alive
print(f"greedy episode length (at most 300): {length.mean():.1f}")
