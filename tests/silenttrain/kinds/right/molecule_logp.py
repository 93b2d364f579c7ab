"""Lipophilicity of small molecular graphs with a hand-made message passing net (accelerate)."""

import math

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ATOMS, TYPES, EPOCHS, ACCUM = 10, 5, 10, 4


def make_molecules(n, seed):
    rng = np.random.default_rng(seed)
    types = rng.integers(TYPES, size=(n, ATOMS))
    adj = np.triu(rng.random((n, ATOMS, ATOMS)) < 0.22, 1).astype(np.float32)
    adj = adj + adj.transpose(0, 2, 1)
    polar = np.array([0.2, -0.5, 0.7, -0.9, 0.4])[types]
    y = polar.sum(1) * 0.4 + 0.35 * np.einsum("ni,nij,nj->n", polar, adj, polar) + 0.1 * rng.normal(size=n)
    return TensorDataset(torch.from_numpy(types), torch.from_numpy(adj), torch.tensor(y, dtype=torch.float32))


class MessageNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(TYPES, dim)
        self.own, self.msg = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.read = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, types, adj):
        h = self.emb(types)
        for _ in range(2):
            h = h + torch.tanh(self.own(h) + adj @ self.msg(h))
        return self.read(h).sum(1).squeeze(-1)


def main():
    torch.manual_seed(19)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUM)
    train = DataLoader(make_molecules(2112, 1), batch_size=16, shuffle=True)
    test = DataLoader(make_molecules(600, 2), batch_size=200)
    model = MessageNet()
    opt = torch.optim.AdamW(model.parameters(), lr=8e-3)
    updates = EPOCHS * math.ceil(len(train) / ACCUM)
    warm = updates // 10
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda k: (k + 1) / warm if k < warm else max(0.0, (updates - k) / (updates - warm))
    )
    model, opt, train, test, sched = accelerator.prepare(model, opt, train, test, sched)

    for epoch in range(EPOCHS):
        model.train()
        total, seen = 0.0, 0
        for types, adj, y in train:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(types, adj), y)
                accelerator.backward(loss)
                opt.step()
                sched.step()
                opt.zero_grad()
            total += loss.item() * len(y)
            seen += len(y)
        accelerator.print(f"epoch {epoch}: mse {total / seen:.4f}  lr {sched.get_last_lr()[0]:.2e}")

    model.eval()
    preds, refs = [], []
    with torch.no_grad():
        for types, adj, y in test:
            p, r = accelerator.gather_for_metrics((model(types, adj), y))
            preds.append(p)
            refs.append(r)
    pred, ref = torch.cat(preds), torch.cat(refs)
    r2 = 1 - (pred - ref).pow(2).sum() / (ref - ref.mean()).pow(2).sum()
    accelerator.print(f"test rmse {(pred - ref).pow(2).mean().sqrt():.4f}  R2 {r2:.4f}")


if __name__ == "__main__":
    main()
