"""Five-fold cross-validation of a readmission model on a small patient table."""

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(40)


def make_patients(n=500, seed=40):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 20)) * rng.uniform(0.5, 3, size=20)
    z = x / x.std(0)
    logit = 1.1 * z[:, 0] - 0.8 * z[:, 1] + 0.6 * z[:, 2] * z[:, 3]
    y = (logit + rng.logistic(size=n) > 0).astype(np.int64)
    return x.astype(np.float32), y


def build_net(n_in):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def fit(net, opt, x, y, epochs=20, batch_size=32):
    net.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


@torch.no_grad()
def score(net, x, y):
    net.eval()
    logits = net(x)
    return {
        "accuracy": (logits.argmax(1) == y).float().mean().item(),
        "log loss": nn.functional.cross_entropy(logits, y).item(),
    }


def cross_validate(x, y, n_splits=5):
    folds = StratifiedKFold(n_splits=n_splits, shuffle=True, random_state=0)
    net = build_net(x.shape[1])
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    results = []
    for k, (tr, va) in enumerate(folds.split(x, y)):
        scaler = StandardScaler().fit(x[tr])
        x_tr = torch.from_numpy(scaler.transform(x[tr]))
        x_va = torch.from_numpy(scaler.transform(x[va]))
        y_tr, y_va = torch.from_numpy(y[tr]), torch.from_numpy(y[va])
        fit(net, opt, x_tr, y_tr)
        results.append(score(net, x_va, y_va))
        print(f"fold {k}: " + "  ".join(f"{m} {v:.3f}" for m, v in results[-1].items()))
    return results


def main():
    x, y = make_patients()
    results = cross_validate(x, y)
    for metric in ("accuracy", "log loss"):
        values = [r[metric] for r in results]
        print(f"cv {metric}: {np.mean(values):.4f} +- {np.std(values):.4f}")


if __name__ == "__main__":
    main()
