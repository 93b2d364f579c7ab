"""Five-fold cross-validation of a small classifier on noisy labels."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import KFold

torch.manual_seed(0)
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 20)).astype(np.float32)
signal = X[:, 0] + X[:, 1] * X[:, 2]
y = (signal + rng.normal(scale=1.0, size=400) > 0).astype(np.int64)


class Classifier(nn.Module):
    def __init__(self, dim, hidden=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )

    def forward(self, x):
        return self.net(x)


class CrossValidator:
    def __init__(self, model, folds=5, epochs=15, lr=2e-3, batch_size=40):
        self.model = model
        self.folds = KFold(folds, shuffle=True, random_state=0)
        self.epochs, self.lr, self.batch_size = epochs, lr, batch_size

    def fit_fold(self, x, t):
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        self.model.train()
        for _ in range(self.epochs):
            for idx in torch.randperm(len(x)).split(self.batch_size):
                loss = nn.functional.cross_entropy(self.model(x[idx]), t[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()

    def score(self, x, t):
        self.model.eval()
        with torch.no_grad():
            return (self.model(x).argmax(1) == t).float().mean().item()

    def run(self, X, y):
        X, y = torch.from_numpy(X), torch.from_numpy(y)
        scores = []
        for k, (train_idx, val_idx) in enumerate(self.folds.split(X)):
            loss = self.fit_fold(X[train_idx], y[train_idx])
            scores.append(self.score(X[val_idx], y[val_idx]))
            print(f"fold {k}  last loss {loss:.4f}  accuracy {scores[-1]:.3f}")
        return scores


scores = CrossValidator(Classifier(20)).run(X, y)
print(f"cross-validated accuracy {np.mean(scores):.3f} +- {np.std(scores):.3f}")
