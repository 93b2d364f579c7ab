"""Which genres a film belongs to (several may hold), from plot features."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
GENRES, FEATURES = 10, 40


def films(n):
    x = torch.randn(n, FEATURES)
    w = torch.randn(FEATURES, GENRES, generator=torch.Generator().manual_seed(1)) / FEATURES**0.5
    score = 3 * (x @ w) - 1.8
    return x, (torch.rand(n, GENRES) < torch.sigmoid(2 * score)).float()


class GenreTagger(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(FEATURES, hidden), nn.ReLU(), nn.Dropout(0.1))
        self.classifier = nn.Sequential(nn.Linear(hidden, GENRES), nn.Sigmoid())

    def forward(self, x):
        return self.classifier(self.backbone(x))


class Runner:
    def __init__(self, model):
        self.model = model
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            if epoch % 4 == 3:
                print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}")

    @torch.no_grad()
    def f1(self, x, y):
        self.model.eval()
        prob = self.model(x)
        guess = (prob > 0.5).float()
        hit = (guess * y).sum(0)
        score = 2 * hit / (guess.sum(0) + y.sum(0)).clamp(min=1)
        return score.mean().item(), (prob - y).pow(2).mean().item(), guess.sum(1).mean().item()


x_train, y_train = films(1600)
x_test, y_test = films(600)
runner = Runner(GenreTagger())
runner.fit(DataLoader(TensorDataset(x_train, y_train), batch_size=128, shuffle=True), epochs=12)
f1, brier, labels = runner.f1(x_test, y_test)
print(f"macro F1 {f1:.3f}, Brier score {brier:.4f}, genres per film {labels:.2f} (true {y_test.sum(1).mean():.2f})")
