"""Sentiment of synthetic product reviews with a bag-of-embeddings transformer layer."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH = 300, 20
PEAK_LR, WARMUP, EPOCHS = 3e-3, 40, 6


def make_reviews(n, seed):
    rng = np.random.default_rng(seed)
    polarity = np.random.default_rng(5).normal(size=VOCAB)
    polarity[:10] = 0.0
    ids = rng.integers(10, VOCAB, size=(n, LENGTH))
    has_not = rng.random(n) < 0.4
    where = rng.integers(0, LENGTH, size=n)
    ids[has_not, where[has_not]] = 3
    score = polarity[ids].sum(1) * np.where(has_not, -1, 1)
    y = (score > 0).astype(np.float32)
    return TensorDataset(torch.from_numpy(ids), torch.from_numpy(y))


class ReviewModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids):
        return self.head(self.layer(self.emb(ids)).mean(1)).squeeze(-1)


def build_optim(model, total_steps):
    opt = torch.optim.AdamW(model.parameters(), lr=PEAK_LR, weight_decay=0.01)

    def schedule(step):
        if step < WARMUP:
            return PEAK_LR * (step + 1) / WARMUP
        return PEAK_LR * max(0.0, (total_steps - step) / (total_steps - WARMUP))

    return opt, torch.optim.lr_scheduler.LambdaLR(opt, schedule)


def train_epoch(model, loader, opt, sched):
    model.train()
    total = 0.0
    for ids, y in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    good = sum(((model(ids) > 0).float() == y).sum().item() for ids, y in loader)
    return good / len(loader.dataset)


def main():
    torch.manual_seed(12)
    train = DataLoader(make_reviews(4000, 1), batch_size=64, shuffle=True)
    test = DataLoader(make_reviews(1000, 2), batch_size=250)
    model = ReviewModel()
    opt, sched = build_optim(model, EPOCHS * len(train))
    for epoch in range(EPOCHS):
        print(f"epoch {epoch}: loss {train_epoch(model, train, opt, sched):.4f}")
    print(f"test accuracy {evaluate(model, test):.4f}")


if __name__ == "__main__":
    main()
