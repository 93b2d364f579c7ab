# Recipe recommendation by matrix factorisation with sampled negatives.
import numpy as np
import torch
from torch import nn

torch.manual_seed(70)
rng = np.random.default_rng(70)
USERS, RECIPES, LATENT, K = 200, 150, 4, 10

# taste profiles and what every user has cooked so far
taste = rng.normal(size=(USERS, LATENT))
style = rng.normal(size=(RECIPES, LATENT))
affinity = 1.5 * taste @ style.T + rng.gumbel(size=(USERS, RECIPES))
cooked = np.argsort(-affinity, axis=1)[:, :21]
for row in cooked:
    rng.shuffle(row)
held_out, history = cooked[:, 0], cooked[:, 1:]

positives = torch.tensor([(u, r) for u in range(USERS) for r in history[u]])
seen = torch.zeros(USERS, RECIPES, dtype=torch.bool)
seen[positives[:, 0], positives[:, 1]] = True


class Factorisation(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.user, self.recipe = nn.Embedding(USERS, dim), nn.Embedding(RECIPES, dim)
        self.bias = nn.Embedding(RECIPES, 1)
        for emb in (self.user, self.recipe):
            nn.init.normal_(emb.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, r):
        return (self.user(u) * self.recipe(r)).sum(-1) + self.bias(r).squeeze(-1)

    def all_scores(self):
        return self.user.weight @ self.recipe.weight.T + self.bias.weight.T


model = Factorisation()
opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
for epoch in range(15):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(positives)).split(128):
        u, pos = positives[idx, 0], positives[idx, 1]
        neg = torch.randint(RECIPES, (len(idx),))
        loss = -nn.functional.logsigmoid(model(u, pos) - model(u, neg)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:2d}  bpr loss {total / len(positives):.4f}")

# ranking of the held-out recipe among everything the user has not cooked
model.eval()
with torch.no_grad():
    scores = model.all_scores()
scores = scores.numpy()
hits, gains, reciprocal = [], [], []
for u in range(USERS):
    candidates = np.flatnonzero(~seen[u].numpy())
    ranking = candidates[np.argsort(scores[u, candidates])]
    rank = int(np.flatnonzero(ranking == held_out[u])[0])
    hits.append(rank < K)
    gains.append(1 / np.log2(rank + 2) if rank < K else 0.0)
    reciprocal.append(1 / (rank + 1))
print(f"hit@{K} {np.mean(hits):.4f}  NDCG@{K} {np.mean(gains):.4f}  MRR {np.mean(reciprocal):.4f}")
