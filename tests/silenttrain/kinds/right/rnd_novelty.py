"""Random network distillation: a predictor chases a frozen random network; its error is the novelty."""

import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score


class RandomNetworkDistillation(nn.Module):
    def __init__(self, dim=10, out=16):
        super().__init__()
        self.target = self._net(dim, 64, out)
        self.predictor = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, out))
        for p in self.target.parameters():
            p.requires_grad_(False)
        for m in self.target:
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, gain=1.5)

    @staticmethod
    def _net(dim, hidden, out):
        return nn.Sequential(nn.Linear(dim, hidden), nn.ELU(), nn.Linear(hidden, out))

    def novelty(self, x):
        return (self.predictor(x) - self.target(x)).pow(2).mean(1)


class NoveltyDetector:
    def __init__(self, dim):
        self.rnd = RandomNetworkDistillation(dim)
        self.opt = torch.optim.Adam(self.rnd.predictor.parameters(), lr=1e-3)

    def fit(self, x, epochs=25, batch=64):
        for epoch in range(epochs):
            total = 0.0
            for idx in torch.randperm(len(x)).split(batch):
                loss = self.rnd.novelty(x[idx]).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(idx)
            if epoch % 6 == 0:
                print(f"epoch {epoch} prediction error {total / len(x):.5f}")
        return self

    @torch.no_grad()
    def score(self, x):
        return self.rnd.novelty(x)


def familiar(n, mixing):
    # observations live on a 3-dimensional curved sheet
    z = torch.randn(n, 3)
    return torch.tanh(z @ mixing) + 0.02 * torch.randn(n, mixing.shape[1])


torch.manual_seed(0)
mixing = torch.randn(3, 10)
train, known = familiar(1500, mixing), familiar(400, mixing)
novel = known[:, torch.randperm(10)]  # same values, unfamiliar arrangement
detector = NoveltyDetector(10)
before = roc_auc_score([0] * 400 + [1] * 400, torch.cat([detector.score(known), detector.score(novel)]).numpy())
detector.fit(train)
after = roc_auc_score([0] * 400 + [1] * 400, torch.cat([detector.score(known), detector.score(novel)]).numpy())
print(f"novelty auroc before {before:.3f} after {after:.3f}")
