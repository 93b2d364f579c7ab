"""PPO with clipping on a contextual bandit with noisy rewards."""

import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(3)
N_ACTIONS, DIM = 5, 8
CLIP, EPOCHS, BATCH = 0.2, 8, 256
true_w = torch.randn(DIM, N_ACTIONS)

policy = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh(), nn.Linear(64, N_ACTIONS))
value = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-2)


def rewards_for(ctx, action):
    best = (ctx @ true_w).argmax(1)
    return (action == best).float() + 0.5 * torch.randn(len(ctx))


@torch.no_grad()
def evaluate():
    ctx = torch.randn(2000, DIM)
    best = (ctx @ true_w).argmax(1)
    return (policy(ctx).argmax(1) == best).float().mean().item()


for iteration in range(30):
    # collect a batch of experience
    with torch.no_grad():
        states = torch.randn(BATCH, DIM)
        actions = Categorical(logits=policy(states)).sample()
        rewards = rewards_for(states, actions)
        advantages = rewards - value(states).squeeze(-1)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

    clipped = []
    for _ in range(EPOCHS):
        with torch.no_grad():
            old_log_probs = Categorical(logits=policy(states)).log_prob(actions)
        dist = Categorical(logits=policy(states))
        ratio = (dist.log_prob(actions) - old_log_probs).exp()
        surr1 = ratio * advantages
        surr2 = ratio.clamp(1 - CLIP, 1 + CLIP) * advantages
        policy_loss = -torch.min(surr1, surr2).mean()
        value_loss = (value(states).squeeze(-1) - rewards).pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clipped.append(((ratio - 1).abs() > CLIP).float().mean().item())
    if iteration % 5 == 4:
        print(
            f"iter {iteration:2d}  reward {rewards.mean().item():.3f}  "
            f"clip fraction {sum(clipped) / EPOCHS:.3f}  greedy {evaluate():.3f}"
        )

print(f"final greedy accuracy {evaluate():.3f}")
