"""Cross-validated turnover prediction for enzyme variants."""

import copy

import numpy as np
import torch
from sklearn.model_selection import KFold
from torch import nn

torch.manual_seed(44)
FEATS = 15


def make_variants(n=450, seed=44):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, FEATS)) * rng.uniform(0.5, 4, FEATS)
    z = x / x.std(0)
    y = z[:, 0] + 0.8 * np.maximum(z[:, 1], 0) - 0.7 * z[:, 2] + 0.4 * rng.normal(size=n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Stopper:
    def __init__(self, patience):
        self.patience = patience
        self.reset()

    def reset(self):
        self.best, self.bad, self.weights = float("inf"), 0, None

    def update(self, value, net):
        if value < self.best:
            self.best, self.bad = value, 0
            self.weights = copy.deepcopy(net.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def mse(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).squeeze(-1) - y).pow(2).mean().item()


def main():
    x, y = make_variants()
    net = nn.Sequential(nn.Linear(FEATS, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    blank = copy.deepcopy(net.state_dict())
    stopper = Stopper(patience=6)
    preds = torch.zeros(len(y))

    for k, (rest, te) in enumerate(KFold(5, shuffle=True, random_state=1).split(x)):
        net.load_state_dict(blank)
        stopper.reset()
        opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-4)
        inner = np.random.default_rng(k).permutation(rest)
        va, tr = inner[:70], inner[70:]
        mean, std = x[tr].mean(0), x[tr].std(0)
        z = (x - mean) / std
        for epoch in range(60):
            net.train()
            for idx in torch.from_numpy(tr)[torch.randperm(len(tr))].split(29):
                loss = (net(z[idx]).squeeze(-1) - y[idx]).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            if stopper.update(mse(net, z[va], y[va]), net):
                break
        net.load_state_dict(stopper.weights)
        net.eval()
        with torch.no_grad():
            preds[te] = net(z[te]).squeeze(-1)
        print(f"fold {k}: stopped at {epoch}, inner mse {stopper.best:.3f}, outer mse {mse(net, z[te], y[te]):.3f}")

    r2 = 1 - (preds - y).pow(2).sum() / (y - y.mean()).pow(2).sum()
    print(f"pooled out-of-fold R2 {r2:.4f}  rmse {(preds - y).pow(2).mean().sqrt():.4f}")


if __name__ == "__main__":
    main()
