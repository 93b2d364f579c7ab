"""Learning to rank documents from pairwise preferences."""

import torch
import torch.nn as nn

torch.manual_seed(0)
DIM, N_DOCS, N_PAIRS = 15, 400, 3000

docs = torch.randn(N_DOCS, DIM)
w = torch.randn(DIM)
relevance = docs @ w / DIM**0.5 + torch.sin(2 * docs[:, 0])
train_docs, test_docs = torch.arange(300), torch.arange(300, 400)


def preference_pairs(pool, n):
    """Pairs (i, j) and whether people preferred i."""
    i, j = pool[torch.randint(len(pool), (n,))], pool[torch.randint(len(pool), (n,))]
    noise = 0.2 * torch.randn(n)
    preferred = (relevance[i] + noise > relevance[j]).float()
    return i, j, preferred


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


scorer = Scorer()
criterion = nn.MarginRankingLoss(margin=0.5)
optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3, weight_decay=1e-4)
i_train, j_train, pref_train = preference_pairs(train_docs, N_PAIRS)

for epoch in range(12):
    scorer.train()
    total, n = 0.0, 0
    for rows in torch.randperm(N_PAIRS).split(50):
        s_i, s_j = scorer(docs[i_train[rows]]), scorer(docs[j_train[rows]])
        loss = criterion(s_i, s_j, pref_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, n = total + loss.item(), n + 1
    if epoch % 3 == 0:
        print(f"epoch {epoch} ranking loss {total / n:.4f}")

scorer.eval()
with torch.no_grad():
    scores = scorer(docs[test_docs])
true = relevance[test_docs]
order = (scores[:, None] > scores[None]) == (true[:, None] > true[None])
off_diagonal = ~torch.eye(len(test_docs), dtype=torch.bool)
top = scores.topk(10).indices
print(f"pairs in the right order {order[off_diagonal].float().mean().item():.3f}")
print(f"mean relevance of the top ten {true[top].mean().item():.3f} (best {true.topk(10).values.mean().item():.3f})")
