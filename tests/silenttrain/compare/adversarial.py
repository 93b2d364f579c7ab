"""Two networks with the same names inside that take turns, on points that get other noise in each epoch; a third, which
is not trained, follows one of them."""

import copy
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

EPOCHS = 2


class Ring(Dataset):
    def __init__(self, size):
        angles = np.linspace(0, 2 * np.pi, size, endpoint=False)
        self.points = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return torch.tensor(self.points[index] + np.random.normal(0, 0.05, 2), dtype=torch.float32)


class Critic(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Linear(inputs, 24)
        self.active = nn.ReLU()
        self.last = nn.Linear(24, outputs)

    def forward(self, x):
        return self.last(self.active(self.first(x)))


class Painter(Critic):
    def forward(self, x):
        return super().forward(x * (1 + 0.1 * random.random()))


random.seed(5)
np.random.seed(5)
torch.manual_seed(5)
points, _ = random_split(Ring(100), [80, 20], generator=torch.Generator().manual_seed(6))
loader = DataLoader(points, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(7))
painter, critic = Painter(4, 2), Critic(2, 1)
follower = copy.deepcopy(painter)
criterion = nn.BCEWithLogitsLoss()
painter_optimizer = torch.optim.Adam(painter.parameters(), lr=0.002, betas=(0.5, 0.999))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=0.002, betas=(0.5, 0.999))

for epoch in range(EPOCHS):
    for real in loader:
        noise = torch.randn(len(real), 4)
        painted = painter(noise)
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        critic_loss = criterion(critic(real), ones) + criterion(critic(painted.detach()), zeros)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()

        with torch.no_grad():
            followed = follower(noise)
        painter_loss = criterion(critic(painted), ones) + 0.1 * (painted - followed).square().mean()
        painter_optimizer.zero_grad()
        painter_loss.backward()
        painter_optimizer.step()
        with torch.no_grad():
            for average, parameter in zip(follower.parameters(), painter.parameters(), strict=True):
                average.lerp_(parameter, 0.1)
    print(f"epoch {epoch + 1}: critic {critic_loss.item():.4f}, painter {painter_loss.item():.4f}")
