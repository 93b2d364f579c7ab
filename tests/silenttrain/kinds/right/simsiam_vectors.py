"""SimSiam: one encoder for both branches, stop-gradient on the projections."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


class Clusters:
    def __init__(self, n, centers, noise=0.7):
        self.y = torch.randint(len(centers), (n,))
        self.x = centers[self.y] + noise * torch.randn(n, centers.shape[1])

    def views(self, idx):
        x = self.x[idx]
        return [x * (torch.rand_like(x) > 0.25) + 0.1 * torch.randn_like(x) for _ in range(2)]


class SimSiam(nn.Module):
    def __init__(self, dim, width=64, out=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(dim, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, out),
            nn.BatchNorm1d(out, affine=False),
        )
        self.predictor = nn.Sequential(nn.Linear(out, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, out))

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return pa, pb, za.detach(), zb.detach()


def negative_cosine(p, z):
    return -F.cosine_similarity(p, z, dim=-1).mean()


centers = torch.randn(5, 20)
train, test = Clusters(1200, centers), Clusters(400, centers)
model = SimSiam(20)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for epoch in range(10):
    for idx in torch.randperm(1200).split(120):
        pa, pb, za, zb = model(*train.views(idx))
        loss = 0.5 * negative_cosine(pa, zb) + 0.5 * negative_cosine(pb, za)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    spread = F.normalize(za, dim=-1).std(0).mean().item()
    print(f"epoch {epoch}  loss {loss.item():.4f}  spread {spread:.3f}")

model.eval()
with torch.no_grad():
    f_train = F.normalize(model.encoder(train.x), dim=-1)
    f_test = F.normalize(model.encoder(test.x), dim=-1)
    near = (f_test @ f_train.T).topk(15).indices
    vote = train.y[near].mode(1).values
print(f"nearest-neighbour accuracy {(vote == test.y).float().mean().item():.3f}")
