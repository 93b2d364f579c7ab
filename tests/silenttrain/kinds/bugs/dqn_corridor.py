"""DQN on a windy corridor, 1-D continuous state, with a replay buffer and a target network."""

import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)

GAMMA, BATCH, SYNC_EVERY, STEPS = 0.97, 32, 100, 1500


def step(pos, action):
    move = (-0.1, 0.0, 0.1)[action]
    pos = max(-1.0, min(1.0, pos + move + random.gauss(0, 0.02)))
    done = pos > 0.9
    return pos, 1.0 if done else -0.01, done


def make_net():
    return nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))


q_net = make_net()
target_net = copy.copy(q_net)
target_net.eval()
for_opt = torch.optim.Adam(q_net.parameters(), lr=1e-3)
buffer = deque(maxlen=2000)

pos, t = random.uniform(-1, 0), 0
losses = []
for it in range(STEPS):
    eps = max(0.05, 1.0 - it / 600)
    if random.random() < eps:
        action = random.randrange(3)
    else:
        with torch.no_grad():
            action = q_net(torch.tensor([[pos]])).argmax().item()
    new_pos, reward, done = step(pos, action)
    buffer.append((pos, action, reward, new_pos, float(done)))
    t += 1
    pos = new_pos
    if done or t >= 60:
        pos, t = random.uniform(-1, 0), 0
    if len(buffer) < 100:
        continue

    s, a, r, s2, d = map(torch.tensor, zip(*random.sample(buffer, BATCH)))
    q = q_net(s[:, None]).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        backup = r + GAMMA * (1 - d) * target_net(s2[:, None]).max(1).values
    loss = F.smooth_l1_loss(q, backup)
    for_opt.zero_grad()
    loss.backward()
    for_opt.step()
    losses.append(loss.item())

    if it % SYNC_EVERY == 0:
        target_net.load_state_dict(q_net.state_dict())
    if it % 300 == 0:
        print(f"step {it} td loss {sum(losses[-100:]) / len(losses[-100:]):.5f}")

returns = []
for _ in range(20):
    pos, total = random.uniform(-1, 0), 0.0
    for _ in range(60):
        with torch.no_grad():
            action = q_net(torch.tensor([[pos]])).argmax().item()
        pos, reward, done = step(pos, action)
        total += reward
        if done:
            break
    returns.append(total)
print(f"mean greedy return {sum(returns) / len(returns):.3f}")
