"""Routes support tickets to one of five teams; inverse square root learning rate."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH, TEAMS = 400, 16, 5
WIDTH, WARMUP = 32, 60


def make_tickets(n, seed):
    rng = np.random.default_rng(seed)
    topic_words = np.random.default_rng(0).permutation(VOCAB)[: TEAMS * 40].reshape(TEAMS, 40)
    team = rng.integers(TEAMS, size=n)
    ids = rng.integers(0, VOCAB, size=(n, LENGTH))
    hit = rng.random((n, LENGTH)) < 0.22
    ids[hit] = topic_words[team[:, None].repeat(LENGTH, 1)[hit], rng.integers(0, 40, size=hit.sum())]
    return TensorDataset(torch.from_numpy(ids), torch.from_numpy(team))


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(WIDTH, TEAMS)

    def forward(self, ids):
        return self.head(self.layer(self.emb(ids)).mean(dim=1))


def noam_lr(step):
    step += 1
    return 0.4 * WIDTH**-0.5 * min(step**-0.5, step * WARMUP**-1.5)


def evaluate(model, loader):
    model.eval()
    good = 0
    with torch.no_grad():
        for ids, team in loader:
            good += (model(ids).argmax(-1) == team).sum().item()
    return good / len(loader.dataset)


def main():
    torch.manual_seed(33)
    train = DataLoader(make_tickets(3000, 1), batch_size=64, shuffle=True)
    test = DataLoader(make_tickets(800, 2), batch_size=200)
    model = Router()
    opt = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, noam_lr)
    for epoch in range(6):
        model.train()
        total = 0.0
        for ids, team in train:
            loss = nn.functional.cross_entropy(model(ids), team)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item() * len(team)
        lr = opt.param_groups[0]["lr"]
        print(f"epoch {epoch}: loss {total / len(train.dataset):.4f}  lr {lr:.5f}")
    print(f"test accuracy {evaluate(model, test):.4f}")


if __name__ == "__main__":
    main()
