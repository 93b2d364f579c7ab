"""Fault detection in two plants: train on one period, score the next, which has more faults."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
rng = np.random.default_rng(2)


def measure(n, fault_rate):
    fault = (rng.random(n) < fault_rate).astype(np.float32)
    temperature = 60 + 4 * rng.normal(size=n) + 9 * fault
    vibration = 0.5 + 0.1 * rng.normal(size=n) + 0.2 * fault
    flow = 300 + 25 * rng.normal(size=n) - 40 * fault
    load = rng.uniform(20, 90, size=n)
    return np.stack([temperature, vibration, flow, load], 1).astype(np.float32), fault


class Detector:
    def __init__(self, hidden=24, lr=5e-3):
        self.scaler = StandardScaler()
        self.net = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.criterion = nn.BCEWithLogitsLoss()

    def prepare(self, X):
        return torch.from_numpy(self.scaler.fit_transform(X))

    def fit(self, X, y, epochs=15, batch=50):
        X, y = self.prepare(X), torch.from_numpy(y)
        self.net.train()
        for epoch in range(epochs):
            total = 0.0
            for idx in torch.randperm(len(X)).split(batch):
                loss = self.criterion(self.net(X[idx]).squeeze(1), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(idx)
            if epoch % 5 == 4:
                print(f"epoch {epoch}  loss {total / len(X):.4f}")
        return self

    @torch.no_grad()
    def predict(self, X):
        self.net.eval()
        return (self.net(self.prepare(X)).squeeze(1) > 0).numpy()


X_train, y_train = measure(1000, 0.15)
X_test, y_test = measure(400, 0.6)
detector = Detector().fit(X_train, y_train)
predicted = detector.predict(X_test)
recall = predicted[y_test == 1].mean()
false_alarms = predicted[y_test == 0].mean()
print(f"test accuracy {(predicted == y_test).mean():.3f}  recall {recall:.3f}  false alarms {false_alarms:.3f}")
