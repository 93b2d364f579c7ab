"""PPO for a discrete tracking task: keep a noisy pointer on a moving mark."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(1)
ENVS, STEPS, GAMMA, CLIP = 48, 32, 0.9, 0.2


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 64), nn.Tanh())
        self.pi = nn.Linear(64, 3)
        self.v = nn.Linear(64, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def reset(n):
    return torch.stack([torch.randn(n), torch.randn(n), 0.1 * torch.randn(n)], dim=1)


def advance(obs, action):
    pointer, mark, drift = obs.unbind(1)
    pointer = pointer + 0.25 * (action - 1) + 0.02 * torch.randn_like(pointer)
    mark = mark + drift
    drift = torch.where(mark.abs() > 1.5, -drift, drift)
    return torch.stack([pointer, mark, drift], dim=1), -(pointer - mark).abs()


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
obs = reset(ENVS)
for it in range(12):
    store = {k: [] for k in ("obs", "act", "logp", "rew", "val")}
    with torch.no_grad():
        for _ in range(STEPS):
            dist, val = policy(obs)
            act = dist.sample()
            nxt, rew = advance(obs, act)
            for k, v in zip(store, (obs, act, dist.log_prob(act), rew, val), strict=True):
                store[k].append(v)
            obs = nxt
        ret, run = [], policy(obs)[1]
        for rew in reversed(store["rew"]):
            run = rew + GAMMA * run
            ret.insert(0, run)
    roll = {k: torch.cat(v) for k, v in store.items()}
    ret = torch.cat(ret)
    adv = ret - roll["val"]
    adv = (adv - adv.mean()) / adv.std()
    for _ in range(4):
        for idx in torch.randperm(len(ret)).chunk(4):
            dist, val = policy(roll["obs"][idx])
            ratio = (dist.log_prob(roll["act"][idx]) - roll["logp"][idx]).exp()
            surrogate = torch.min(ratio * adv[idx], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[idx])
            loss = -surrogate.mean() + 0.1 * (val - ret[idx]).pow(2).mean() - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        clip_share = ((ratio - 1).abs() > CLIP).float().mean()
    if it % 3 == 2:
        print(f"iteration {it}: reward {roll['rew'].mean():.3f}, clipped {clip_share:.2f}")
    obs = reset(ENVS)

with torch.no_grad():
    obs, err = reset(400), 0.0
    for _ in range(40):
        obs, rew = advance(obs, policy(obs)[0].probs.argmax(1))
        err -= rew.mean().item() / 40
print(f"mean distance of the greedy policy {err:.3f}")
