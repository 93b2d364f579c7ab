"""Metric learning for sensor fingerprints; retrieval by Euclidean distance."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(87)
DEVICES, DIM, SHOTS = 60, 24, 14


def make_fingerprints(seed=87):
    rng = np.random.default_rng(seed)
    core = rng.normal(size=(DEVICES, 6))
    mix = rng.normal(size=(6, DIM))
    device = np.repeat(np.arange(DEVICES), SHOTS)
    x = 0.6 * np.tanh(core[device] @ mix) + 1.2 * rng.normal(size=(len(device), 8)) @ rng.normal(size=(8, DIM)) * 0.5
    x = x + 0.2 * rng.normal(size=x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(device)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


def triplets(device, n, rng):
    a = rng.integers(len(device), size=n)
    pos = np.array([rng.choice(np.flatnonzero((device == device[i]) & (np.arange(len(device)) != i))) for i in a])
    neg = np.array([rng.choice(np.flatnonzero(device != device[i])) for i in a])
    return a, pos, neg


@torch.no_grad()
def retrieval(model, query, q_dev, gallery, g_dev):
    model.eval()
    dist = torch.cdist(model(query), model(gallery))
    order = dist.argsort(dim=1)
    match = (g_dev[order] == q_dev[:, None]).float()
    ranks = torch.arange(1, match.shape[1] + 1)
    precision_at = match.cumsum(1) / ranks
    ap = (precision_at * match).sum(1) / match.sum(1)
    return {
        "recall@1": match[:, 0].mean().item(),
        "recall@5": (match[:, :5].sum(1) > 0).float().mean().item(),
        "mAP": ap.mean().item(),
    }


def main():
    rng = np.random.default_rng(1)
    x, device = make_fingerprints()
    seen = device < 45
    x_tr, d_tr = x[seen], device[seen].numpy()
    x_new, d_new = x[~seen], device[~seen]
    is_query = torch.arange(len(d_new)) % SHOTS < 3
    args = (x_new[is_query], d_new[is_query], x_new[~is_query], d_new[~is_query])

    model = Embedder()
    print("untrained " + "  ".join(f"{k} {v:.4f}" for k, v in retrieval(model, *args).items()))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, 401):
        model.train()
        a, p, n = triplets(d_tr, 64, rng)
        loss = nn.functional.triplet_margin_loss(model(x_tr[a]), model(x_tr[p]), model(x_tr[n]), margin=0.4)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step}: triplet loss {loss.item():.4f}")
    print("new devices " + "  ".join(f"{k} {v:.4f}" for k, v in retrieval(model, *args).items()))


if __name__ == "__main__":
    main()
