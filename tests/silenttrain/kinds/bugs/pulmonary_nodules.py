"""Malignancy of lung nodules from radiomic features and a small patch (accelerate)."""

import numpy as np
import torch
from accelerate import Accelerator
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE, FEATURES = 12, 6


def make_nodules(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2 + 0.5
    phi, r = np.arctan2(yy, xx), np.hypot(xx, yy)
    y = (rng.random(n) < 0.3).astype(np.float32)
    spikes = (0.5 + 0.7 * y + 0.5 * rng.normal(size=n))[:, None, None]
    edge = 3 + spikes * np.cos(5 * phi + rng.uniform(0, 6, size=(n, 1, 1)))
    patch = 1 / (1 + np.exp(2 * (r - edge))) + 0.25 * rng.normal(size=(n, SIDE, SIDE))
    feats = rng.normal(size=(n, FEATURES))
    feats[:, 0] += 0.9 * y
    feats[:, 1] -= 0.6 * y
    return TensorDataset(
        torch.tensor(patch[:, None], dtype=torch.float32), torch.tensor(feats, dtype=torch.float32), torch.from_numpy(y)
    )


class NoduleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.2),
        )
        self.head = nn.Sequential(nn.Linear(16 * 36 + FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, patch, feats):
        return self.head(torch.cat([self.conv(patch), feats], dim=1)).squeeze(-1)


def evaluate(model, loader, accelerator):
    model.eval()
    outputs, labels = [], []
    with torch.no_grad():
        for patch, feats, y in loader:
            pred = (torch.sigmoid(model(patch, feats)) > 0.5).float()
            pred, y = accelerator.gather_for_metrics((pred, y))
            outputs.append(pred)
            labels.append(y)
    pred, y = torch.cat(outputs).cpu().numpy(), torch.cat(labels).cpu().numpy()
    return {"accuracy": (pred == y).mean(), "AUC": roc_auc_score(y, pred)}


def main():
    torch.manual_seed(71)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(make_nodules(1800, 1), batch_size=64, shuffle=True)
    test = DataLoader(make_nodules(900, 2), batch_size=256)
    model = NoduleNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    model, opt, train, test = accelerator.prepare(model, opt, train, test)
    for epoch in range(6):
        model.train()
        total, seen = 0.0, 0
        for patch, feats, y in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(patch, feats), y)
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            total += loss.item() * len(y)
            seen += len(y)
        accelerator.print(f"epoch {epoch}: loss {total / seen:.4f}")
    scores = evaluate(model, test, accelerator)
    accelerator.print("test " + "  ".join(f"{k} {v:.4f}" for k, v in scores.items()))


if __name__ == "__main__":
    main()
