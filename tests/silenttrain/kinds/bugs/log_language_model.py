"""Next-token model for machine logs; perplexity on held-out log files."""

import math

import numpy as np
import torch
from torch import nn

torch.manual_seed(29)
VOCAB, DIM = 40, 48


def make_log(rng, trans, n):
    """Log files differ in how much free text they hold between the templates."""
    chatter = rng.choice([0.02, 0.1, 0.6], p=[0.5, 0.3, 0.2])
    seq = [int(rng.integers(VOCAB))]
    while len(seq) < n:
        if rng.random() < chatter:
            seq.append(int(rng.integers(VOCAB)))
        else:
            seq.append(int(rng.choice(VOCAB, p=trans[seq[-1]])))
    return torch.tensor(seq)


def corpus(n_files, seed):
    trans = np.random.default_rng(1).dirichlet(np.full(VOCAB, 0.03) + 1e-3, size=VOCAB)
    rng = np.random.default_rng(seed)
    return [make_log(rng, trans, int(rng.integers(100, 300))) for _ in range(n_files)]


class LogLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.gru = nn.GRU(DIM, DIM, batch_first=True)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        h, _ = self.gru(self.emb(ids))
        return self.out(h)


def file_loss(model, ids):
    logits = model(ids[:-1].unsqueeze(0)).squeeze(0)
    return nn.functional.cross_entropy(logits, ids[1:])


def train_pass(model, opt, files, width=50, batch_size=16):
    model.train()
    pieces = [f[k : k + width + 1] for f in files for k in range(0, len(f) - width, width)]
    data = torch.stack(pieces)
    total = 0.0
    for idx in torch.randperm(len(data)).split(batch_size):
        x = data[idx]
        logits = model(x[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item() * len(idx)
    return total / len(data)


@torch.no_grad()
def perplexity(model, files):
    model.eval()
    total = 0.0
    for ids in files:
        total += math.exp(file_loss(model, ids).item())
    return total / len(files)


def main():
    train, valid = corpus(200, 2), corpus(80, 3)
    model = LogLM()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        loss = train_pass(model, opt, train)
        print(f"epoch {epoch}: train loss {loss:.4f}  (train perplexity {math.exp(loss):.3f})")
    print(f"held-out perplexity {perplexity(model, valid):.3f}")


if __name__ == "__main__":
    main()
