"""Which subscribers will leave; categorical embeddings plus numeric columns."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(60)
PLANS, REGIONS, NUMERIC = 6, 10, 5


def make_subscribers(n, seed):
    rng = np.random.default_rng(seed)
    base = np.random.default_rng(9)
    plan_risk, region_risk = base.normal(0, 0.7, PLANS), base.normal(0, 0.4, REGIONS)
    plan, region = rng.integers(PLANS, size=n), rng.integers(REGIONS, size=n)
    num = rng.normal(size=(n, NUMERIC))
    logit = plan_risk[plan] + region_risk[region] + 0.7 * num[:, 0] - 0.5 * num[:, 1] * (plan < 3) - 0.3
    churn = rng.random(n) < 1 / (1 + np.exp(-logit))
    cats = np.stack([plan, region], 1)
    return TensorDataset(
        torch.from_numpy(cats), torch.tensor(num, dtype=torch.float32), torch.tensor(churn, dtype=torch.float32)
    )


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.plan, self.region = nn.Embedding(PLANS, 4), nn.Embedding(REGIONS, 4)
        self.mlp = nn.Sequential(nn.Linear(8 + NUMERIC, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 1))

    def forward(self, cats, num):
        e = torch.cat([self.plan(cats[:, 0]), self.region(cats[:, 1]), num], dim=1)
        return self.mlp(e).squeeze(1)


class ChurnTrainer:
    def __init__(self, lr=2e-3, cutoff=0.5):
        self.net = ChurnNet()
        self.cutoff = cutoff
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr, weight_decay=1e-3)
        self.loss = nn.BCEWithLogitsLoss()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.net.train()
            total = 0.0
            for cats, num, y in loader:
                loss = self.loss(self.net(cats, num), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(y)
            print(f"epoch {epoch}: loss {total / len(loader.dataset):.4f}")

    @torch.no_grad()
    def report(self, loader):
        self.net.eval()
        tp = fp = fn = tn = 0
        for cats, num, y in loader:
            flag = self.net(cats, num) > self.cutoff
            y = y.bool()
            tp += (flag & y).sum().item()
            fp += (flag & ~y).sum().item()
            fn += (~flag & y).sum().item()
            tn += (~flag & ~y).sum().item()
        precision, recall = tp / max(tp + fp, 1), tp / max(tp + fn, 1)
        return {
            "accuracy": (tp + tn) / (tp + fp + fn + tn),
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / max(precision + recall, 1e-9),
        }


if __name__ == "__main__":
    train = DataLoader(make_subscribers(4000, 1), batch_size=64, shuffle=True)
    test = DataLoader(make_subscribers(2000, 2), batch_size=500)
    trainer = ChurnTrainer()
    trainer.fit(train, epochs=8)
    print("test " + "  ".join(f"{k} {v:.4f}" for k, v in trainer.report(test).items()))
