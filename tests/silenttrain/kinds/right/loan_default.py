"""Loan default scoring with a wide-and-deep net; decisions are taken on the logit."""

import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(81)
N_NUM, JOBS = 8, 7


def make_loans(n, seed):
    rng = np.random.default_rng(seed)
    job = rng.integers(JOBS, size=n)
    num = rng.normal(size=(n, N_NUM))
    job_risk = np.random.default_rng(3).normal(0, 0.7, JOBS)
    logit = 1.1 * num[:, 0] - 0.8 * num[:, 1] + np.maximum(num[:, 2], 0) * num[:, 3] + job_risk[job] - 0.9
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    return TensorDataset(
        torch.from_numpy(job), torch.tensor(num, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    )


class WideDeep(nn.Module):
    def __init__(self):
        super().__init__()
        self.job = nn.Embedding(JOBS, 4)
        self.wide = nn.Linear(N_NUM, 1)
        self.deep = nn.Sequential(nn.Linear(N_NUM + 4, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, job, num):
        return (self.wide(num) + self.deep(torch.cat([self.job(job), num], 1))).squeeze(1)


class Scorer:
    def __init__(self):
        self.net = WideDeep()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=2e-3, weight_decay=1e-3)

    def epoch(self, loader):
        self.net.train()
        total = 0.0
        for job, num, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(self.net(job, num), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(y)
        return total / len(loader.dataset)

    @torch.no_grad()
    def decisions(self, loader, cut):
        self.net.eval()
        tp = fp = fn = tn = 0
        for job, num, y in loader:
            flag, bad = self.net(job, num) > cut, y > 0.5
            tp += (flag & bad).sum().item()
            fp += (flag & ~bad).sum().item()
            fn += (~flag & bad).sum().item()
            tn += (~flag & ~bad).sum().item()
        return {
            "accuracy": (tp + tn) / (tp + fp + fn + tn),
            "precision": tp / max(tp + fp, 1),
            "recall": tp / max(tp + fn, 1),
        }


def main():
    train = DataLoader(make_loans(4000, 1), batch_size=80, shuffle=True)
    test = DataLoader(make_loans(1500, 2), batch_size=400)
    scorer = Scorer()
    for epoch in range(8):
        print(f"epoch {epoch}: loss {scorer.epoch(train):.4f}")
    # a bad loan costs four times what a refused good one does: refuse above p = 0.2
    cuts = {"even odds": 0.0, "cost based": math.log(0.2 / 0.8)}
    for name, cut in cuts.items():
        print(f"{name:10s} " + "  ".join(f"{k} {v:.4f}" for k, v in scorer.decisions(test, cut).items()))


if __name__ == "__main__":
    main()
