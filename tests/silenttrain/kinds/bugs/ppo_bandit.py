"""PPO with a clipped objective on a contextual control task."""

import copy

import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(0)
N_ACTIONS, CLIP, EPOCHS, LR = 4, 0.2, 8, 1e-2

W = torch.randn(6, N_ACTIONS)


def rewards_for(obs, act):
    score = obs @ W
    return (score.gather(1, act[:, None]).squeeze(1) - score.mean(1)) + 0.3 * torch.randn(len(obs))


policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, N_ACTIONS))
value = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
old_policy = copy.deepcopy(policy)
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=LR)


def evaluate(n=2000):
    obs = torch.randn(n, 6)
    with torch.no_grad():
        act = policy(obs).argmax(1)
    best = (obs @ W).argmax(1)
    return (act == best).float().mean().item()


print(f"share of best actions at start {evaluate():.3f}")
for iteration in range(30):
    # collect a batch with the current policy
    obs = torch.randn(256, 6)
    with torch.no_grad():
        act = Categorical(logits=policy(obs)).sample()
    rew = rewards_for(obs, act)
    with torch.no_grad():
        adv = rew - value(obs).squeeze(1)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)

    clipped = []
    for _ in range(EPOCHS):
        old_policy.load_state_dict(policy.state_dict())
        for idx in torch.randperm(256).split(256):
            with torch.no_grad():
                old_logp = Categorical(logits=old_policy(obs[idx])).log_prob(act[idx])
            dist = Categorical(logits=policy(obs[idx]))
            ratio = (dist.log_prob(act[idx]) - old_logp).exp()
            surr = torch.min(ratio * adv[idx], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[idx])
            value_loss = (value(obs[idx]).squeeze(1) - rew[idx]).pow(2).mean()
            loss = -surr.mean() + 0.5 * value_loss - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            opt.step()
            clipped.append(((ratio - 1).abs() > CLIP).float().mean().item())
    if iteration % 6 == 0:
        print(f"iter {iteration} reward {rew.mean().item():.3f} clip frac {sum(clipped) / len(clipped):.3f}")

print(f"share of best actions {evaluate():.3f}")
