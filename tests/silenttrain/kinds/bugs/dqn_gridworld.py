"""DQN on a 5x5 grid, learning from the replay of a random walker."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
SIZE, GAMMA, SYNC_EVERY = 5, 0.95, 10
MOVES = torch.tensor([[1, 0], [-1, 0], [0, 1], [0, -1]])
GOAL = torch.tensor([SIZE - 1, SIZE - 1])


def env_step(pos, action):
    nxt = (pos + MOVES[action]).clamp(0, SIZE - 1)
    done = (nxt == GOAL).all(dim=1)
    reward = torch.where(done, 1.0, -0.02)
    return nxt, reward, done


def encode(pos):
    return functional.one_hot(pos, SIZE).flatten(1).float()


class DQNAgent:
    def __init__(self):
        self.online = self.build()
        self.target = self.build()
        for p in self.target.parameters():
            p.requires_grad_(False)
        self.sync()
        self.opt = torch.optim.Adam(self.online.parameters(), lr=3e-3)
        self.updates = 0

    @staticmethod
    def build():
        return nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))

    def sync(self):
        for t, p in zip(self.target.parameters(), self.online.parameters(), strict=True):
            t.data = p.data

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = self.target(encode(s2)).max(dim=1).values
            goal = r + GAMMA * best * (~done).float()
        q = self.online(encode(s)).gather(1, a[:, None]).squeeze(1)
        loss = functional.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % SYNC_EVERY == 0:
            self.sync()
        return loss.item()


replay = []
pos = torch.randint(0, SIZE, (64, 2))
for _ in range(40):
    action = torch.randint(0, 4, (64,))
    nxt, reward, done = env_step(pos, action)
    replay.append((pos, action, reward, nxt, done))
    pos = torch.where(done[:, None], torch.randint(0, SIZE, (64, 2)), nxt)
replay = [torch.cat(parts) for parts in zip(*replay, strict=True)]

agent = DQNAgent()
for update in range(200):
    rows = torch.randint(0, len(replay[0]), (128,))
    loss = agent.learn(*[part[rows] for part in replay])
    if update % 50 == 0:
        print(f"update {update:3d}  td loss {loss:.4f}")

start = torch.cartesian_prod(torch.arange(SIZE), torch.arange(SIZE))[:-1]
pos, alive, total = start, torch.ones(len(start), dtype=torch.bool), torch.zeros(len(start))
with torch.no_grad():
    for _ in range(20):
        pos2, reward, done = env_step(pos, agent.online(encode(pos)).argmax(dim=1))
        total += reward * alive
        alive &= ~done
        pos = pos2
print(f"reached the goal from {(~alive).float().mean():.2f} of the cells, mean return {total.mean():.3f}")
