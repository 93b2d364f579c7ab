import torch
from torch import nn
from torch.nn.functional import smooth_l1_loss

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = online
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)

for _ in range(60):
    state, after, reward = torch.randn(32, 4), torch.randn(32, 4), torch.randn(32)
    action = torch.randint(2, (32, 1))
    with torch.no_grad():
        goal = reward + 0.9 * target(after).amax(1)
    loss = smooth_l1_loss(online(state).gather(1, action).squeeze(1), goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # found
