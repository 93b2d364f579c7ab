"""DQN on a slippery lake with holes; the target is a hard copy refreshed every few updates."""

import copy

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
SIDE, GAMMA = 4, 0.95
HOLES = torch.tensor([5, 7, 11, 12])
GOAL = 15


def lake_step(cell, action):
    slip = torch.rand(len(cell)) < 0.1
    action = torch.where(slip, torch.randint(0, 4, cell.shape), action)
    row, col = cell // SIDE, cell % SIDE
    row = (row + (action == 0).long() - (action == 1).long()).clamp(0, SIDE - 1)
    col = (col + (action == 2).long() - (action == 3).long()).clamp(0, SIDE - 1)
    cell = row * SIDE + col
    done = torch.isin(cell, HOLES) | (cell == GOAL)
    return cell, (cell == GOAL).float(), done


def onehot(cell):
    return functional.one_hot(cell, SIDE * SIDE).float()


q_net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
target_net = copy.deepcopy(q_net)
target_net.requires_grad_(False)
optimizer = torch.optim.Adam(q_net.parameters(), lr=5e-3)

buffer = []
cell = torch.zeros(64, dtype=torch.long)
epsilon = 1.0
for step in range(200):
    greedy = q_net(onehot(cell)).argmax(1)
    action = torch.where(torch.rand(64) < epsilon, torch.randint(0, 4, (64,)), greedy)
    nxt, reward, done = lake_step(cell, action)
    buffer.append((cell, action, reward, nxt, done))
    cell = torch.where(done, 0, nxt)
    epsilon = max(0.2, epsilon * 0.985)

    s, a, r, s2, d = (torch.cat(c) for c in zip(*buffer, strict=True))
    pick = torch.randint(0, len(s), (256,))
    with torch.no_grad():
        y = r[pick] + GAMMA * target_net(onehot(s2[pick])).max(1).values * (~d[pick])
    q = q_net(onehot(s[pick])).gather(1, a[pick, None]).squeeze(1)
    loss = functional.mse_loss(q, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 10 == 0:
        target_net.load_state_dict(q_net.state_dict())
    if step % 50 == 49:
        print(f"step {step + 1}  loss {loss.item():.5f}  Q(start) {q_net(onehot(torch.tensor([0]))).max().item():.3f}")

cell, won = torch.zeros(1000, dtype=torch.long), torch.zeros(1000, dtype=torch.bool)
alive = torch.ones(1000, dtype=torch.bool)
with torch.no_grad():
    for _ in range(40):
        cell2, reward, done = lake_step(cell, q_net(onehot(cell)).argmax(1))
        won |= alive & (reward > 0)
        alive &= ~done
        cell = torch.where(alive, cell2, cell)
print(f"share of games won: {won.float().mean():.3f}")
