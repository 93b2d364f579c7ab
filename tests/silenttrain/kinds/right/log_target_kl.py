"""Match a transition table with KL divergences, both arguments in log space."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
STATES, ACTIONS = 12, 3
true_logits = 1.5 * torch.randn(STATES * ACTIONS, STATES)
true_log = F.log_softmax(true_logits, 1)


class Dynamics(nn.Module):
    def __init__(self, rank=8):
        super().__init__()
        self.state = nn.Embedding(STATES, 24)
        self.action = nn.Embedding(ACTIONS, 24)
        self.out = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Linear(64, STATES))

    def forward(self, s, a):
        return F.log_softmax(self.out(torch.cat([self.state(s), self.action(a)], 1)), dim=1)


pairs = torch.cartesian_prod(torch.arange(STATES), torch.arange(ACTIONS))
counts = torch.distributions.Multinomial(300, probs=true_log.exp()).sample()
# smoothed empirical distribution: never zero, so its logarithm is finite
empirical_log = ((counts + 0.5) / (counts + 0.5).sum(1, keepdim=True)).log()

rows = torch.arange(len(pairs))

model = Dynamics()
criterion = nn.KLDivLoss(reduction="batchmean", log_target=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(40):
    for idx in rows[torch.randperm(len(rows))].split(9):
        prediction = model(pairs[idx, 0], pairs[idx, 1])
        loss = criterion(prediction, empirical_log[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 8 == 7:
        print(f"epoch {epoch:2d}  kl {loss.item():.5f}")

with torch.no_grad():
    log_p = model(pairs[:, 0], pairs[:, 1])
    kl = F.kl_div(log_p, true_log, log_target=True, reduction="none").sum(1)
    uniform = F.kl_div(
        torch.full_like(true_log, -torch.tensor(float(STATES)).log().item()),
        true_log,
        log_target=True,
        reduction="none",
    ).sum(1)
print(f"kl to the true table: fitted {kl.mean().item():.4f}  uniform {uniform.mean().item():.4f}")
