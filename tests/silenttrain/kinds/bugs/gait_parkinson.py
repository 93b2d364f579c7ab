"""Detects Parkinsonian gait from insole features; each patient gives many short walks."""

import argparse

import numpy as np
import torch
from torch import nn


def make_walks(n_patients=60, walks=30, seed=3):
    rng = np.random.default_rng(seed)
    diagnosis = rng.permutation(np.arange(n_patients) % 2)
    habit = 1.2 * rng.normal(size=(n_patients, 16))
    sign = np.zeros(16)
    sign[:3] = (0.5, -0.4, 0.4)
    patient = np.repeat(np.arange(n_patients), walks)
    x = habit[patient] + np.outer(2 * diagnosis[patient] - 1, sign)
    x = x + 0.8 * rng.normal(size=(len(patient), 16))
    return x.astype(np.float32), diagnosis[patient].astype(np.int64), patient


def holdout(x, y, patient, fraction, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    n_test = int(fraction * len(x))
    te, tr = order[:n_test], order[n_test:]
    return tr, te


class GaitModel:
    def __init__(self, n_in, lr, epochs, batch_size):
        self.epochs, self.batch_size = epochs, batch_size
        self.net = nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 2))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)

    def fit(self, x, y):
        self.mean, self.std = x.mean(0), x.std(0)
        x = (x - self.mean) / self.std
        for epoch in range(self.epochs):
            self.net.train()
            total = 0.0
            for idx in torch.randperm(len(x)).split(self.batch_size):
                loss = nn.functional.cross_entropy(self.net(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(idx)
            if (epoch + 1) % 5 == 0:
                print(f"epoch {epoch + 1:2d}  loss {total / len(x):.4f}")
        return self

    @torch.no_grad()
    def predict(self, x):
        self.net.eval()
        return self.net((x - self.mean) / self.std).argmax(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--holdout", type=float, default=0.25)
    args = ap.parse_args([])
    torch.manual_seed(1)

    x, y, patient = make_walks()
    tr, te = holdout(x, y, patient, args.holdout, seed=10)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    model = GaitModel(x.shape[1], args.lr, args.epochs, args.batch_size).fit(x[tr], y[tr])
    pred = model.predict(x[te])
    sens = (pred[y[te] == 1] == 1).float().mean()
    spec = (pred[y[te] == 0] == 0).float().mean()
    print(f"{len(tr)} walks for training, {len(te)} held out")
    print(f"held-out accuracy {(pred == y[te]).float().mean():.4f}")
    print(f"sensitivity {sens:.4f}  specificity {spec:.4f}")


if __name__ == "__main__":
    main()
