"""A mixture model's categorical posterior, learned with KLDivLoss in log space."""

import torch
import torch.nn as nn

torch.manual_seed(0)
K, DIM = 5, 3
means = 1.5 * torch.randn(K, DIM)
log_prior = torch.log_softmax(0.5 * torch.randn(K), 0)


def log_posterior(x):
    """Exact log p(k | x) of a Gaussian mixture with unit variance."""
    joint = log_prior - 0.5 * (x[:, None] - means).pow(2).sum(-1)
    return joint - joint.logsumexp(1, keepdim=True)


def draw(n):
    k = torch.multinomial(log_prior.exp(), n, replacement=True)
    return means[k] + torch.randn(n, DIM)


x_train, x_test = draw(1500), draw(1000)
target_train = log_posterior(x_train)  # logs, they are all negative

net = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh(), nn.Linear(64, K), nn.LogSoftmax(dim=-1))
criterion = nn.KLDivLoss(reduction="batchmean", log_target=True)
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)

for epoch in range(25):
    total, n = 0.0, 0
    for idx in torch.randperm(len(x_train)).split(50):
        loss = criterion(net(x_train[idx]), target_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, n = total + loss.item(), n + 1
    sched.step()
    if epoch % 6 == 0:
        print(f"epoch {epoch} kl {total / n:.5f}")

net.eval()
with torch.no_grad():
    log_q, log_p = net(x_test), log_posterior(x_test)
    kl = criterion(log_q, log_p).item()
    # the other direction for the report
    reverse = (log_q.exp() * (log_q - log_p)).sum(1).mean().item()
    agree = (log_q.argmax(1) == log_p.argmax(1)).float().mean().item()
print(f"test kl {kl:.5f}, reverse kl {reverse:.5f}, same most probable component {agree:.3f}")
