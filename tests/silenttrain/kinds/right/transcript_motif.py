"""Classifies RNA transcripts by the order of two motifs, with a packed two-layer BiGRU."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(6)


def make_transcripts(n, seed):
    rng = np.random.default_rng(seed)
    motif_a, motif_b = np.array([0, 2, 2, 0]), np.array([3, 1, 1, 3])
    data = []
    for _ in range(n):
        length = int(rng.integers(18, 50))
        seq = rng.integers(0, 4, size=length)
        cut = int(rng.integers(5, length - 5))
        left, right = int(rng.integers(0, cut - 4)), int(rng.integers(cut, length - 4))
        y = int(rng.integers(2))
        first, second = (motif_a, motif_b) if y else (motif_b, motif_a)
        seq[left : left + 4], seq[right : right + 4] = first, second
        data.append((torch.from_numpy(seq), y))
    return data


def collate(batch):
    lengths = torch.tensor([len(s) for s, _ in batch])
    order = lengths.argsort(descending=True)
    ids = pad_sequence([batch[i][0] for i in order], batch_first=True)
    labels = torch.tensor([y for _, y in batch])
    return ids, lengths[order], labels[order]


class MotifNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(4, 12)
        self.gru = nn.GRU(12, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, 2)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True)
        _, h = self.gru(packed)
        return self.out(torch.cat([h[-2], h[-1]], dim=1))


def evaluate(model, loader):
    model.eval()
    good = total = 0
    with torch.no_grad():
        for ids, lengths, y in loader:
            good += (model(ids, lengths).argmax(1) == y).sum().item()
            total += len(y)
    return good / total


def main():
    train = DataLoader(make_transcripts(1200, 1), batch_size=50, shuffle=True, collate_fn=collate)
    valid = DataLoader(make_transcripts(400, 2), batch_size=100, collate_fn=collate)
    model = MotifNet()
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(5):
        model.train()
        total, n = 0.0, 0
        for ids, lengths, y in train:
            loss = nn.functional.cross_entropy(model(ids, lengths), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item() * len(y)
            n += len(y)
        print(f"epoch {epoch}: loss {total / n:.4f}  valid accuracy {evaluate(model, valid):.4f}")


if __name__ == "__main__":
    main()
