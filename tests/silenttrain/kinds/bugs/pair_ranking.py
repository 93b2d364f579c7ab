"""Learn a relevance score from preferences between pairs of documents."""

import torch
import torch.nn as nn

torch.manual_seed(0)
DIM = 12
direction = torch.randn(DIM)


def utility(docs):
    return docs @ direction / DIM**0.5 + 0.5 * torch.sin(2 * docs[:, 0])


def make_pairs(n):
    first, second = torch.randn(n, DIM), torch.randn(n, DIM)
    preferred = (utility(first) > utility(second)).float()
    return first, second, preferred


train_a, train_b, train_pref = make_pairs(2000)
test_a, test_b, test_pref = make_pairs(600)

scorer = nn.Sequential(
    nn.Linear(DIM, 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
criterion = nn.MarginRankingLoss(margin=0.5)
optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3)

for epoch in range(10):
    scorer.train()
    total = 0.0
    for idx in torch.randperm(len(train_a)).split(80):
        score_a = scorer(train_a[idx]).squeeze(1)
        score_b = scorer(train_b[idx]).squeeze(1)
        # 1 where the first document is preferred
        loss = criterion(score_a, score_b, train_pref[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch}  ranking loss {total / len(train_a):.4f}")

scorer.eval()
with torch.no_grad():
    a, b = scorer(test_a).squeeze(1), scorer(test_b).squeeze(1)
correct = ((a > b) == (test_pref > 0.5)).float().mean().item()
print(f"test pair accuracy {correct:.3f}")
