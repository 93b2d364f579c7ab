"""Predicts the expression of target genes in yeast from transcription factor activities."""

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FACTORS, GENES = 15, 40


def make_profiles(n, seed):
    world = np.random.default_rng(500)
    baseline = world.normal(6, 2, size=GENES)
    regulation = world.normal(size=(FACTORS, GENES)) * (world.random((FACTORS, GENES)) < 0.2)
    rng = np.random.default_rng(seed)
    tf = rng.normal(size=(n, FACTORS))
    expr = baseline + 0.5 * np.tanh(tf) @ regulation + 0.8 * rng.normal(size=(n, GENES))
    return TensorDataset(torch.tensor(tf, dtype=torch.float32), torch.tensor(expr, dtype=torch.float32))


def pearson(a, b):
    a = a - a.mean(axis=1, keepdims=True)
    b = b - b.mean(axis=1, keepdims=True)
    return (a * b).sum(1) / np.sqrt((a**2).sum(1) * (b**2).sum(1))


def predict(model, loader, accelerator):
    model.eval()
    preds, refs = [], []
    with torch.no_grad():
        for tf, expr in loader:
            p, r = accelerator.gather_for_metrics((model(tf), expr))
            preds.append(p)
            refs.append(r)
    return torch.cat(preds).numpy(), torch.cat(refs).numpy()


def main():
    torch.manual_seed(50)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(make_profiles(1500, 1), batch_size=50, shuffle=True)
    test = DataLoader(make_profiles(400, 2), batch_size=200)
    model = nn.Sequential(nn.Linear(FACTORS, 64), nn.ReLU(), nn.Linear(64, GENES))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    model, opt, train, test = accelerator.prepare(model, opt, train, test)
    for epoch in range(12):
        model.train()
        total, seen = 0.0, 0
        for tf, expr in train:
            loss = nn.functional.mse_loss(model(tf), expr)
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            total += loss.item() * len(tf)
            seen += len(tf)
        if epoch % 3 == 2:
            accelerator.print(f"epoch {epoch + 1:2d}: mse {total / seen:.4f}")
    pred, ref = predict(model, test, accelerator)
    gene_r = pearson(pred, ref)
    accelerator.print(f"test rmse {np.sqrt(((pred - ref) ** 2).mean()):.4f}")
    accelerator.print(f"gene-wise correlation: mean {gene_r.mean():.4f}  worst {gene_r.min():.4f}")


if __name__ == "__main__":
    main()
