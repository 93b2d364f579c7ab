"""Tags drug / dose / negation tokens in synthetic clinical notes with a small GRU tagger."""

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, TAGS, LENGTH = 120, 4, 24


def make_notes(n, seed):
    """Token classes: 0-9 negation cues, 10-39 drugs, 40-59 numbers, rest filler."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, size=(n, LENGTH), p=[0.1, 0.25, 0.2, 0.45])
    lo, hi = np.array([0, 10, 40, 60]), np.array([10, 40, 60, VOCAB])
    tokens = (lo[kind] + rng.random((n, LENGTH)) * (hi - lo)[kind]).astype(np.int64)
    tags = np.zeros((n, LENGTH), dtype=np.int64)
    for i in range(n):
        negated = 0
        for t in range(LENGTH):
            if kind[i, t] == 0:
                negated = 4
            elif kind[i, t] == 1:
                tags[i, t] = 3 if negated > 0 else 1
            elif kind[i, t] == 2 and t and kind[i, t - 1] == 1:
                tags[i, t] = 2
            negated -= 1
    return TensorDataset(torch.from_numpy(tokens), torch.from_numpy(tags))


class Tagger(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.gru = nn.GRU(dim, hidden, bidirectional=True)
        self.out = nn.Linear(2 * hidden, TAGS)

    def forward(self, tokens):
        x = self.emb(tokens).permute(1, 0, 2)
        h, _ = self.gru(x)
        return self.out(h)


def tag_loss(logits, tags):
    return nn.functional.cross_entropy(logits.reshape(-1, TAGS), tags.reshape(-1))


def evaluate(model, loader, accelerator):
    model.eval()
    hits = np.zeros(TAGS)
    support = np.zeros(TAGS)
    with torch.no_grad():
        for tokens, tags in loader:
            pred = model(tokens).argmax(-1).permute(1, 0)
            pred, tags = accelerator.gather_for_metrics((pred, tags))
            for k in range(TAGS):
                hits[k] += ((pred == k) & (tags == k)).sum().item()
                support[k] += (tags == k).sum().item()
    return hits.sum() / support.sum(), hits / support


def main():
    torch.manual_seed(2)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(make_notes(1280, 1), batch_size=32, shuffle=True)
    valid = DataLoader(make_notes(400, 2), batch_size=100)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    model, opt, train, valid = accelerator.prepare(model, opt, train, valid)
    for epoch in range(4):
        model.train()
        total, seen = 0.0, 0
        for tokens, tags in train:
            loss = tag_loss(model(tokens), tags)
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            total += loss.item() * len(tokens)
            seen += len(tokens)
        acc, _ = evaluate(model, valid, accelerator)
        accelerator.print(f"epoch {epoch}: loss {total / seen:.3f}  valid accuracy {acc:.3f}")
    acc, recall = evaluate(model, valid, accelerator)
    accelerator.print(f"final token accuracy {acc:.4f}")
    accelerator.print("recall per tag: " + " ".join(f"{r:.3f}" for r in recall))


if __name__ == "__main__":
    main()
