"""DDPG on a one-dimensional point mass that should stop at the origin."""

import copy
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
GAMMA, TAU, BATCH, HORIZON = 0.95, 0.02, 64, 30


def net(i, o, last=None):
    layers = [nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, o)]
    return nn.Sequential(*layers, *([last] if last else []))


actor, critic = net(2, 1, nn.Tanh()), net(3, 1)
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
buffer = []


def reset():
    return np.array([np.random.uniform(-1, 1), 0.0], dtype=np.float32)


def env_step(s, a):
    v = 0.8 * s[1] + 0.2 * a
    x = np.clip(s[0] + v, -2, 2)
    return np.array([x, v], dtype=np.float32), float(-(x**2) - 0.01 * a**2)


def soft_update(target, source):
    for tp, sp in zip(target.parameters(), source.parameters()):
        tp = TAU * sp.data + (1 - TAU) * tp.data


def evaluate(episodes=20):
    total = 0.0
    for _ in range(episodes):
        s = reset()
        for _ in range(HORIZON):
            with torch.no_grad():
                a = actor(torch.from_numpy(s)).item()
            s, r = env_step(s, a)
            total += r
    return total / episodes


for episode in range(60):
    s = reset()
    for t in range(HORIZON):
        with torch.no_grad():
            a = actor(torch.from_numpy(s)).item()
        a = float(np.clip(a + 0.3 * np.random.randn(), -1, 1))
        s2, r = env_step(s, a)
        buffer.append((s, a, r, s2))
        s = s2
        if len(buffer) < 200:
            continue
        rows = random.sample(buffer, BATCH)
        bs = torch.from_numpy(np.stack([x[0] for x in rows]))
        ba = torch.tensor([[x[1]] for x in rows])
        br = torch.tensor([[x[2]] for x in rows])
        bs2 = torch.from_numpy(np.stack([x[3] for x in rows]))
        with torch.no_grad():
            q_next = critic_target(torch.cat([bs2, actor_target(bs2)], 1))
            y = br + GAMMA * q_next
        critic_loss = F.mse_loss(critic(torch.cat([bs, ba], 1)), y)
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
        actor_loss = -critic(torch.cat([bs, actor(bs)], 1)).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()
        soft_update(critic_target, critic)
        soft_update(actor_target, actor)
    if episode % 15 == 14:
        print(f"episode {episode}  critic loss {critic_loss.item():.4f}  return {evaluate():.2f}")

with torch.no_grad():
    x = torch.cat([bs, ba], 1)
    drift = (critic(x) - critic_target(x)).abs().mean().item()
print(f"final return {evaluate(50):.3f}  critic vs target {drift:.3f}")
