"""Active learning: the labelled set grows by the rows that the model is least sure of."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = 2 * torch.rand(3000, 2) - 1
y = ((x[:, 0] ** 2 + x[:, 1] ** 2) > 0.5).long()

test_rows = torch.arange(2400, 3000)
pool = torch.arange(2400)
start = pool[torch.randperm(len(pool))[:40]]
is_labelled = torch.zeros(3000, dtype=torch.bool)
is_labelled[start] = True

ROUNDS, QUERY, STEPS = 6, 20, 60


def fresh_model():
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def accuracy(model, rows):
    with torch.no_grad():
        return (model(x[rows]).argmax(1) == y[rows]).float().mean().item()


for rnd in range(ROUNDS):
    # a new model for every round, on all the labels bought so far
    model = fresh_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    rows = is_labelled.nonzero().squeeze(1)
    for step in range(STEPS):
        batch = rows[torch.randint(len(rows), (32,))]
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(
        f"round {rnd}  labels {len(rows)} of {len(pool)}  loss {loss.item():.4f}  "
        f"test accuracy {accuracy(model, test_rows):.3f}"
    )
    if rnd < ROUNDS - 1:
        candidates = pool[~is_labelled[pool]]
        with torch.no_grad():
            prob = model(x[candidates]).softmax(1)
        entropy = -(prob * prob.clamp_min(1e-9).log()).sum(1)
        chosen = candidates[entropy.topk(QUERY).indices]
        is_labelled[chosen] = True

assert not is_labelled[test_rows].any()
print(f"final test accuracy {accuracy(model, test_rows):.3f} with {int(is_labelled.sum())} labels")
