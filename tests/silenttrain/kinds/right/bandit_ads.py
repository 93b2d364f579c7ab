"""Contextual bandit for ad placement; the training curve is a bias-corrected moving average."""

import numpy as np
import torch
from torch import nn

ARMS, CONTEXT, DECAY = 5, 8, 0.95


class Smoothed:
    def __init__(self, decay):
        self.decay, self.value, self.steps = decay, 0.0, 0

    def add(self, x):
        self.value = self.decay * self.value + (1 - self.decay) * x
        self.steps += 1

    def get(self):
        return self.value / (1 - self.decay**self.steps)


class Site:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.weights = np.random.default_rng(0).normal(size=(ARMS, CONTEXT))

    def visitors(self, n):
        x = self.rng.normal(size=(n, CONTEXT))
        prob = 1 / (1 + np.exp(-(x @ self.weights.T) + 1.0))
        return torch.tensor(x, dtype=torch.float32), prob

    def click(self, prob, arm):
        p = prob[np.arange(len(arm)), arm]
        return torch.tensor(self.rng.random(len(arm)) < p, dtype=torch.float32)


def act(model, x, eps, rng):
    with torch.no_grad():
        best = model(x).argmax(1).numpy()
    explore = rng.random(len(x)) < eps
    return np.where(explore, rng.integers(ARMS, size=len(x)), best)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    site = Site(seed=2)
    model = nn.Sequential(nn.Linear(CONTEXT, 32), nn.ReLU(), nn.Linear(32, ARMS))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_avg, ctr_avg = Smoothed(DECAY), Smoothed(DECAY)
    clicks = shown = 0

    for day in range(1, 601):
        x, prob = site.visitors(64)
        arm = act(model, x, eps=max(0.05, 0.5 - day / 600), rng=rng)
        click = site.click(prob, arm)
        logit = model(x)[torch.arange(64), torch.from_numpy(arm)]
        loss = nn.functional.binary_cross_entropy_with_logits(logit, click)
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_avg.add(loss.item())
        ctr_avg.add(click.mean().item())
        clicks += click.sum().item()
        shown += len(click)
        if day == 1 or day % 150 == 0:
            print(
                f"day {day:3d}: loss {loss_avg.get():.4f}  smoothed CTR {ctr_avg.get():.4f}  CTR since launch {clicks / shown:.4f}"
            )

    x, prob = site.visitors(5000)
    arm = act(model, x, eps=0.0, rng=rng)
    got = prob[np.arange(5000), arm].mean()
    print(
        f"expected CTR of the greedy policy {got:.4f}  best possible {prob.max(1).mean():.4f}  random {prob.mean():.4f}"
    )


if __name__ == "__main__":
    main()
