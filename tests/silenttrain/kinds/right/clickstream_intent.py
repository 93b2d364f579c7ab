"""Purchase intent from click streams of different length."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(9)
PAD, EVENTS = 0, 30


class Sessions(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(n):
            length = int(rng.integers(5, 35))
            clicks = rng.integers(1, EVENTS, size=length)
            recent = clicks[-8:]
            score = (recent < 8).sum() - (recent > 22).sum() + 0.3 * (clicks < 4).sum()
            self.items.append((clicks.tolist(), int(score + 0.3 * rng.normal() > 0.6)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    width = max(len(c) for c, _ in batch)
    ids = torch.full((len(batch), width), PAD)
    for row, (clicks, _) in enumerate(batch):
        ids[row, width - len(clicks) :] = torch.tensor(clicks)
    return ids, torch.tensor([y for _, y in batch], dtype=torch.float32)


class IntentModel(nn.Module):
    def __init__(self, dim=24, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(EVENTS, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(hidden, 1)

    def forward(self, ids):
        out, _ = self.gru(self.emb(ids))
        return self.head(self.drop(out[:, -1, :])).squeeze(-1)


class Trainer:
    def __init__(self, model, lr=4e-3):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.loss = nn.BCEWithLogitsLoss()

    def fit_epoch(self, loader):
        self.model.train()
        total = count = 0
        for ids, y in loader:
            loss = self.loss(self.model(ids), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(y)
            count += len(y)
        return total / count

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        right = count = 0
        for ids, y in loader:
            right += ((self.model(ids) > 0) == (y > 0.5)).sum().item()
            count += len(y)
        return right / count


if __name__ == "__main__":
    train = DataLoader(Sessions(2000, 1), batch_size=64, shuffle=True, collate_fn=collate)
    test = DataLoader(Sessions(600, 2), batch_size=200, collate_fn=collate)
    trainer = Trainer(IntentModel())
    for epoch in range(6):
        print(f"epoch {epoch}: loss {trainer.fit_epoch(train):.4f}  test acc {trainer.accuracy(test):.4f}")
    print(f"final accuracy {trainer.accuracy(test):.4f}")
