"""Q-learning for a shop that orders stock every evening."""

import torch
from torch import nn

torch.manual_seed(3)
CAP, ACTIONS, GAMMA = 20, 6, 0.97
ORDER_DELAY_PRICE, PRICE, HOLD, FIXED = 1.0, 3.0, 0.05, 2.0


def simulate(stock, order):
    demand = torch.poisson(torch.full_like(stock, 2.5))
    sold = torch.minimum(stock, demand)
    reward = PRICE * sold - HOLD * stock - ORDER_DELAY_PRICE * order - FIXED * (order > 0)
    return (stock - sold + order).clamp(max=CAP), reward


def features(stock):
    z = stock[:, None] / CAP
    return torch.cat([z, z**2, (stock[:, None] < 3).float()], dim=1)


def make_net():
    return nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, ACTIONS))


q_net = make_net()
target_net = make_net()
target_net.load_state_dict(q_net.state_dict())
optimizer = torch.optim.Adam(q_net.parameters(), lr=5e-3)

stock = torch.randint(0, CAP, (4000,)).float()
order = torch.randint(0, ACTIONS, (4000,))
next_stock, reward = simulate(stock, 2.0 * order)

for step in range(1, 201):
    idx = torch.randint(0, 4000, (256,))
    with torch.no_grad():
        bootstrap = target_net(features(next_stock[idx])).max(dim=1).values
        y = reward[idx] / 10 + GAMMA * bootstrap
    q = q_net(features(stock[idx])).gather(1, order[idx, None]).squeeze(1)
    loss = nn.functional.mse_loss(q, y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q_net.parameters(), 5.0)
    optimizer.step()
    if step % 8 == 0:
        target_net.state_dict().update(q_net.state_dict())
    if step % 40 == 0:
        print(f"step {step}: loss {loss.item():.4f}, mean Q {q.mean().item():.3f}")

with torch.no_grad():
    s = torch.full((500,), 5.0)
    profit = torch.zeros(500)
    for _ in range(60):
        choice = q_net(features(s)).argmax(dim=1)
        s, r = simulate(s, 2.0 * choice)
        profit += r
print(f"profit of 60 days: {profit.mean():.2f} +- {profit.std():.2f}")
