"""Fault classification from gearbox vibration snippets of different length."""

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(3)
rng = np.random.default_rng(3)
N_CLASSES, CHANNELS = 4, 3


def make_snippet():
    label = int(rng.integers(N_CLASSES))
    n = int(rng.integers(15, 90))
    t = np.arange(n)
    freq = 0.25 + 0.22 * label
    phase = rng.uniform(0, 2 * np.pi)
    gains = rng.uniform(0.6, 1.4, size=CHANNELS)
    wave = np.sin(freq * t + phase)[:, None] * gains
    wave += 0.35 * rng.standard_normal((n, CHANNELS))
    return torch.tensor(wave, dtype=torch.float32), label


def make_set(n):
    items = [make_snippet() for _ in range(n)]
    return sorted(items, key=lambda it: len(it[0]))


def collate(items):
    xs, ys = zip(*items)
    lengths = torch.tensor([len(x) for x in xs])
    return pad_sequence(xs, batch_first=True), lengths, torch.tensor(ys)


def bucketed_batches(data, batch_size):
    starts = list(range(0, len(data), batch_size))
    rng.shuffle(starts)
    for s in starts:
        yield collate(data[s : s + batch_size])


class SnippetClassifier(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(CHANNELS, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, N_CLASSES))

    def forward(self, x, lengths):
        out, _ = self.rnn(x)
        summary = out[:, -1]
        return self.head(summary)


def train_epoch(model, data, opt):
    model.train()
    total, n = 0.0, 0
    for x, lengths, y in bucketed_batches(data, 32):
        loss = nn.functional.cross_entropy(model(x, lengths), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item() * len(y)
        n += len(y)
    return total / n


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    x, lengths, y = collate(data)
    return (model(x, lengths).argmax(1) == y).float().mean().item()


def main():
    train, valid = make_set(960), make_set(400)
    model = SnippetClassifier()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(7):
        loss = train_epoch(model, train, opt)
        print(f"epoch {epoch:2d}  train loss {loss:.3f}  valid acc {accuracy(model, valid):.3f}")
    print(f"final validation accuracy: {accuracy(model, valid):.3f}")


if __name__ == "__main__":
    main()
