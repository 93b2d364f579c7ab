"""Several emotions per message; multi-label classifier over averaged word vectors."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EMOTIONS = ["joy", "anger", "fear", "sadness", "surprise"]
VOCAB, LENGTH = 300, 18


def make_messages(n, seed):
    rng = np.random.default_rng(seed)
    lexicon = np.random.default_rng(4).permutation(VOCAB)[:150].reshape(len(EMOTIONS), 30)
    y = (rng.random((n, len(EMOTIONS))) < [0.4, 0.3, 0.2, 0.3, 0.15]).astype(np.float32)
    ids = rng.integers(0, VOCAB, size=(n, LENGTH))
    for e in range(len(EMOTIONS)):
        rows = np.flatnonzero(y[:, e])
        for _ in range(3):
            ids[rows, rng.integers(0, LENGTH, len(rows))] = rng.choice(lexicon[e], len(rows))
    return TensorDataset(torch.from_numpy(ids), torch.from_numpy(y))


class Tagger(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCAB, dim, mode="mean")
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, len(EMOTIONS)))

    def forward(self, ids):
        return self.head(self.bag(ids))


@torch.no_grad()
def f1_table(model, loader):
    """Counts are pooled over all batches; F1 is taken per emotion afterwards."""
    model.eval()
    tp = torch.zeros(len(EMOTIONS))
    n_pred, n_true = torch.zeros_like(tp), torch.zeros_like(tp)
    for ids, y in loader:
        hit = model(ids) > 0
        tp += (hit * y).sum(0)
        n_pred += hit.sum(0)
        n_true += y.sum(0)
    per_class = 2 * tp / (n_pred + n_true).clamp(min=1)
    micro = 2 * tp.sum() / (n_pred.sum() + n_true.sum())
    return per_class, per_class.mean().item(), micro.item()


def main():
    torch.manual_seed(4)
    train = DataLoader(make_messages(4000, 1), batch_size=64, shuffle=True)
    test = DataLoader(make_messages(1000, 2), batch_size=300)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        model.train()
        total = 0.0
        for ids, y in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(ids)
        print(f"epoch {epoch}: loss {total / len(train.dataset):.4f}")
    per_class, macro, micro = f1_table(model, test)
    print("  ".join(f"{name} {f:.3f}" for name, f in zip(EMOTIONS, per_class)))
    print(f"macro F1 {macro:.4f}  micro F1 {micro:.4f}")


if __name__ == "__main__":
    main()
