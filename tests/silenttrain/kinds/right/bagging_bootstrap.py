"""Bagging: each member is trained on a bootstrap draw with replacement and judged on its out-of-bag rows."""

import torch
from torch import nn

torch.manual_seed(8)
ROWS, MEMBERS, STEPS = 400, 6, 30


def soil(n):
    x = torch.rand(n, 6)
    moisture = torch.sin(6 * x[:, 0]) + 2 * x[:, 1] * x[:, 2] - x[:, 3] + 0.2 * torch.randn(n)
    return x, moisture


class Member:
    def __init__(self, n):
        self.bag = torch.randint(0, n, (n,))
        out = torch.ones(n, dtype=torch.bool)
        out[self.bag] = False
        self.oob = out.nonzero().squeeze(1)
        self.net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def fit(self, x, y):
        optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        for _ in range(STEPS):
            rows = self.bag[torch.randint(0, len(self.bag), (128,))]
            loss = nn.functional.mse_loss(self.net(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    @torch.no_grad()
    def predict(self, x):
        return self.net(x).squeeze(1)


x, y = soil(ROWS)
x_test, y_test = soil(400)
members = [Member(ROWS) for _ in range(MEMBERS)]
votes, count = torch.zeros(ROWS), torch.zeros(ROWS)
for i, member in enumerate(members):
    last = member.fit(x, y)
    votes[member.oob] += member.predict(x[member.oob])
    count[member.oob] += 1
    print(f"member {i}: {member.bag.unique().numel()} different rows, last loss {last:.4f}")

seen = count > 0
oob_rmse = (votes[seen] / count[seen] - y[seen]).pow(2).mean().sqrt()
single = torch.stack([(m.predict(x_test) - y_test).pow(2).mean().sqrt() for m in members]).mean()
bagged = (torch.stack([m.predict(x_test) for m in members]).mean(0) - y_test).pow(2).mean().sqrt()
print(f"out-of-bag rmse {oob_rmse:.3f}, one member {single:.3f}, ensemble {bagged:.3f}")
