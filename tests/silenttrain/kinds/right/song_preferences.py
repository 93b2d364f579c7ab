"""Like prediction per listener; the metric is the mean over listeners of their own AUC."""

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(48)
USERS, SONGS, DIM = 100, 300, 6


def make_ratings(seed=48, train_per_user=60, test_per_user=30):
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(USERS, DIM))
    audio = rng.normal(size=(SONGS, DIM))
    mood = rng.normal(0, 1.5, size=USERS)
    parts = {"train": [], "test": []}
    for u in range(USERS):
        songs = rng.choice(SONGS, size=train_per_user + test_per_user, replace=False)
        p = 1 / (1 + np.exp(-(1.2 * audio[songs] @ taste[u] + mood[u])))
        like = (rng.random(len(songs)) < p).astype(np.float32)
        rows = np.stack([np.full(len(songs), u), songs, like], axis=1)
        parts["train"].append(rows[:train_per_user])
        parts["test"].append(rows[train_per_user:])
    return {k: np.concatenate(v) for k, v in parts.items()}, torch.tensor(audio, dtype=torch.float32)


class TasteModel(nn.Module):
    def __init__(self, audio):
        super().__init__()
        self.register_buffer("audio", audio)
        self.user = nn.Embedding(USERS, 16)
        self.bias = nn.Embedding(USERS, 1)
        self.song = nn.Linear(DIM, 16)

    def forward(self, user, song):
        match = (self.user(user) * self.song(self.audio[song])).sum(-1)
        return match + self.bias(user).squeeze(-1)


def as_dataset(rows):
    t = torch.from_numpy(rows)
    return TensorDataset(t[:, 0].long(), t[:, 1].long(), t[:, 2].float())


@torch.no_grad()
def listener_auc(model, rows):
    """Each batch holds all test songs of exactly one listener."""
    model.eval()
    by_user = [np.flatnonzero(rows[:, 0] == u).tolist() for u in range(USERS)]
    loader = DataLoader(as_dataset(rows), batch_sampler=by_user)
    scores = []
    for user, song, like in loader:
        if like.min() == like.max():
            continue
        scores.append(roc_auc_score(like.numpy(), model(user, song).numpy()))
    return float(np.mean(scores)), len(scores)


parts, audio = make_ratings()
train = DataLoader(as_dataset(parts["train"]), batch_size=100, shuffle=True)
model = TasteModel(audio)
opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
for epoch in range(15):
    model.train()
    total = 0.0
    for user, song, like in train:
        loss = nn.functional.binary_cross_entropy_with_logits(model(user, song), like)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(like)
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:2d}: loss {total / len(train.dataset):.4f}")
auc, n = listener_auc(model, parts["test"])
print(f"mean AUC within listeners {auc:.4f} ({n} listeners with both likes and dislikes)")
