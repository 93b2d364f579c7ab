"""One grasp model is adapted to three grippers one after another; forgetting is reported."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(10)
GRIPPERS = ("parallel", "suction", "soft")
FEATURES = 12


def make_gripper(k, n, seed):
    rng = np.random.default_rng(100 * k + seed)
    base = np.random.default_rng(7).normal(size=FEATURES)
    own = np.random.default_rng(50 + k).normal(size=FEATURES)
    x = rng.normal(size=(n, FEATURES))
    score = x @ (base + 1.0 * own) + 1.5 * np.abs(x[:, 0]) - 1.2 + 0.5 * rng.normal(size=n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(score > 0, dtype=torch.float32)


def adapt(model, x, y, epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(40):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[idx]).squeeze(-1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return ((model(x).squeeze(-1) > 0).float() == y).float().mean().item()


def main():
    train = {g: make_gripper(k, 600, 1) for k, g in enumerate(GRIPPERS)}
    test = {g: make_gripper(k, 500, 2) for k, g in enumerate(GRIPPERS)}
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))

    table = np.zeros((len(GRIPPERS), len(GRIPPERS)))
    for i, gripper in enumerate(GRIPPERS):
        adapt(model, *train[gripper], epochs=15, lr=5e-3)
        table[i] = [accuracy(model, *test[g]) for g in GRIPPERS]
        row = "  ".join(f"{g} {a:.3f}" for g, a in zip(GRIPPERS, table[i]))
        print(f"after {gripper:8s}: {row}")

    diag = np.diag(table)
    forgetting = (diag[:-1] - table[-1, :-1]).mean()
    print(f"accuracy right after each adaptation {diag.mean():.4f}")
    print(f"mean forgetting at the end of the sequence {forgetting:.4f}")


if __name__ == "__main__":
    main()
