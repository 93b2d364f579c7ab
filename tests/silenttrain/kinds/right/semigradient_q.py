"""Q-learning with function approximation on a corridor, bootstrapping from the same network."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
random.seed(0)
CELLS, GAMMA = 8, 0.9
q_net = nn.Sequential(nn.Linear(CELLS, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(q_net.parameters(), lr=3e-3)
memory = []


def encode(cells):
    return F.one_hot(torch.as_tensor(cells), CELLS).float()


def move(cell, action):
    nxt = max(0, cell - 1) if action == 0 else cell + 1
    done = nxt == CELLS - 1
    return nxt, (1.0 if done else 0.0), done


def greedy(cell):
    with torch.no_grad():
        return q_net(encode([cell]))[0].argmax().item()


def update(batch):
    s, a, r, s2, d = zip(*batch)
    q = q_net(encode(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
    # semi-gradient: the bootstrap comes from the current weights, held constant
    bootstrap = q_net(encode(s2)).max(1).values.detach()
    target = torch.tensor(r) + GAMMA * bootstrap * (1 - torch.tensor(d).float())
    loss = F.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for episode in range(60):
    cell = random.randrange(CELLS - 1)
    epsilon = max(0.1, 1.0 - episode / 30)
    for t in range(30):
        action = random.randrange(2) if random.random() < epsilon else greedy(cell)
        nxt, reward, done = move(cell, action)
        memory.append((cell, action, reward, nxt, done))
        cell = nxt
        if len(memory) >= 64:
            loss = update(random.sample(memory, 64))
        if done:
            break

values = q_net(encode(range(CELLS - 1))).max(1).values
expected = torch.tensor([GAMMA ** (CELLS - 2 - c) for c in range(CELLS - 1)])
print("learned ", [round(v, 2) for v in values.tolist()])
print("expected", [round(v, 2) for v in expected.tolist()])
print("greedy policy", [greedy(c) for c in range(CELLS - 1)])
