"""Short-term traffic flow on a small road graph; the best validation checkpoint is tested."""

import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(16)
NODES, LAGS = 8, 6


def simulate(steps=2400, seed=16):
    rng = np.random.default_rng(seed)
    adj = (rng.random((NODES, NODES)) < 0.35).astype(float)
    np.fill_diagonal(adj, 0)
    adj = adj / np.maximum(adj.sum(1, keepdims=True), 1)
    flow = np.zeros((steps, NODES))
    for t in range(1, steps):
        rush = np.sin(2 * np.pi * t / 96 + np.arange(NODES) * 0.2)
        flow[t] = 0.45 * flow[t - 1] + 0.4 * np.tanh(adj @ flow[t - 1]) + 0.5 * rush + 0.2 * rng.normal(size=NODES)
    return flow.astype(np.float32), torch.tensor(adj, dtype=torch.float32)


def windows(flow):
    x = np.stack([flow[t - LAGS : t].T for t in range(LAGS, len(flow))])
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(flow[LAGS:]))


class GraphNet(nn.Module):
    def __init__(self, adj, dim=24):
        super().__init__()
        self.register_buffer("adj", adj)
        self.inp, self.mix = nn.Linear(LAGS, dim), nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        h = torch.relu(self.mix(torch.cat([h, self.adj @ h], dim=-1)))
        return self.out(h).squeeze(-1)


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.best_mae, self.best_state = 0.0, None

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            loss = nn.functional.smooth_l1_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def mae(self, loader):
        self.model.eval()
        total, n = 0.0, 0
        for x, y in loader:
            total += (self.model(x) - y).abs().sum().item()
            n += y.numel()
        return total / n

    def fit(self, train, valid, epochs):
        for epoch in range(epochs):
            self.train_epoch(train)
            mae = self.mae(valid)
            if mae > self.best_mae:
                self.best_mae = mae
                self.best_state = copy.deepcopy(self.model.state_dict())
            if (epoch + 1) % 4 == 0:
                print(f"epoch {epoch + 1:2d}  valid MAE {mae:.4f}")
        self.model.load_state_dict(self.best_state)


if __name__ == "__main__":
    flow, adj = simulate()
    train = DataLoader(windows(flow[:1500]), batch_size=64, shuffle=True)
    valid = DataLoader(windows(flow[1500:1900]), batch_size=200)
    test = DataLoader(windows(flow[1900:]), batch_size=200)
    trainer = Trainer(GraphNet(adj))
    trainer.fit(train, valid, epochs=16)
    print(f"test MAE of the selected checkpoint {trainer.mae(test):.4f}")
