"""Parses address lines into fields token by token; padded targets carry -100."""

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

VOCAB, FIELDS, IGNORE = 90, 4, -100


def make_addresses(n, seed):
    """1-30 words, 31-60 numbers, 61-89 towns; after a town (and words) a number is a postcode."""
    rng = np.random.default_rng(seed)
    data = []
    for _ in range(n):
        tokens, fields, town = [], [], False
        for _ in range(int(rng.integers(4, 18))):
            kind = int(rng.choice(3, p=[0.4, 0.35, 0.25]))
            tokens.append(1 + 30 * kind + int(rng.integers(30)) if kind < 2 else 61 + int(rng.integers(29)))
            fields.append((0, 3 if town else 1, 2)[kind])
            town = kind == 2 or (town and kind == 0)
        data.append((torch.tensor(tokens), torch.tensor(fields)))
    return data


def collate(batch):
    tokens, fields = zip(*batch)
    return (
        pad_sequence(tokens, batch_first=True, padding_value=0),
        pad_sequence(fields, batch_first=True, padding_value=IGNORE),
    )


class Parser(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, FIELDS)

    def forward(self, tokens):
        return self.out(self.gru(self.emb(tokens))[0])


def main():
    torch.manual_seed(41)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(make_addresses(1200, 1), batch_size=40, shuffle=True, collate_fn=collate)
    valid = DataLoader(make_addresses(350, 2), batch_size=100, collate_fn=collate)
    model = Parser()
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    model, opt, train, valid = accelerator.prepare(model, opt, train, valid)
    criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)

    for epoch in range(4):
        model.train()
        total, tokens_seen = 0.0, 0
        for tokens, fields in train:
            loss = criterion(model(tokens).flatten(0, 1), fields.flatten())
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            n = (fields != IGNORE).sum().item()
            total += loss.item() * n
            tokens_seen += n
        accelerator.print(f"epoch {epoch}: loss per token {total / tokens_seen:.4f}")

    model.eval()
    correct = count = whole = lines = 0
    with torch.no_grad():
        for tokens, fields in valid:
            pred = model(tokens).argmax(-1)
            correct += (pred == fields).sum().item()
            count += (fields != IGNORE).sum().item()
            whole += ((pred == fields) | (fields == IGNORE)).all(1).sum().item()
            lines += len(fields)
    accelerator.print(f"token accuracy {correct / count:.4f}  whole lines {whole / lines:.4f}")


if __name__ == "__main__":
    main()
