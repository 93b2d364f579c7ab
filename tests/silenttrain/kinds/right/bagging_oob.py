"""Bagged networks with out-of-bag evaluation."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, DIM, MEMBERS, EPOCHS = 500, 12, 5, 25


def make(n):
    x = torch.randn(n, DIM)
    logit = 2 * x[:, 0] * x[:, 1] + x[:, 2] - x[:, 3]
    return x, (logit + 0.5 * torch.randn(n) > 0).float()


x, y = make(N)
x_test, y_test = make(2000)

oob_sum, oob_count = torch.zeros(N), torch.zeros(N)
test_sum = torch.zeros(len(x_test))
for member in range(MEMBERS):
    # with replacement: about a third of the rows is not in the bag
    bag = torch.randint(N, (N,))
    out_of_bag = torch.ones(N, dtype=torch.bool)
    out_of_bag[bag] = False

    net = nn.Sequential(nn.Linear(DIM, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for idx in bag[torch.randperm(N)].split(50):
            loss = F.binary_cross_entropy_with_logits(net(x[idx]).squeeze(1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
    net.eval()
    with torch.no_grad():
        oob_sum[out_of_bag] += net(x[out_of_bag]).squeeze(1).sigmoid()
        oob_count[out_of_bag] += 1
        test_sum += net(x_test).squeeze(1).sigmoid()
    print(f"member {member} bag loss {total / 10:.4f} rows out of bag {int(out_of_bag.sum())}")

seen = oob_count > 0
oob_acc = ((oob_sum[seen] / oob_count[seen] > 0.5).float() == y[seen]).float().mean().item()
test_acc = ((test_sum / MEMBERS > 0.5).float() == y_test).float().mean().item()
print(f"out-of-bag accuracy {oob_acc:.3f} ({int(seen.sum())} rows), test accuracy {test_acc:.3f}")
