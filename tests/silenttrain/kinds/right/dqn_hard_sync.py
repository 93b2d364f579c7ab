"""Double DQN on a small ring world with a hard target sync every 250 updates."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(3)
torch.manual_seed(3)
CELLS, GOAL, GAMMA, SYNC = 12, 7, 0.9, 250
eye = torch.eye(CELLS)


def env_step(cell, action):
    cell = (cell + (1 if action == 1 else -1)) % CELLS
    if random.random() < 0.1:  # slippery ring
        cell = (cell + 1) % CELLS
    return cell, float(cell == GOAL), cell == GOAL


def make_net():
    return nn.Sequential(nn.Linear(CELLS, 32), nn.ReLU(), nn.Linear(32, 2))


online, target = make_net(), make_net()
target.load_state_dict(online.state_dict())
opt = torch.optim.Adam(online.parameters(), lr=2e-3)

# one fixed set of transitions from a random policy (offline data)
memory = []
cell = 0
for _ in range(3000):
    a = random.randrange(2)
    nxt, r, done = env_step(cell, a)
    memory.append((cell, a, r, nxt, float(done)))
    cell = random.randrange(CELLS) if done else nxt

for update in range(2000):
    s, a, r, s2, d = map(torch.tensor, zip(*random.sample(memory, 64)))
    q = online(eye[s]).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        best = online(eye[s2]).argmax(1, keepdim=True)
        y = r + GAMMA * (1 - d) * target(eye[s2]).gather(1, best).squeeze(1)
    loss = F.mse_loss(q, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (update + 1) % SYNC == 0:
        target.load_state_dict(online.state_dict())
        print(f"update {update + 1} loss {loss.item():.5f} synced")

lengths = []
with torch.no_grad():
    policy = online(eye).argmax(1)
for start in range(CELLS):
    if start == GOAL:
        continue
    for _ in range(20):
        cell, n, done = start, 0, False
        while not done and n < 50:
            cell, _, done = env_step(cell, policy[cell].item())
            n += 1
        lengths.append(n)
print("greedy actions", policy.tolist())
print(f"mean steps to goal {sum(lengths) / len(lengths):.2f}")
