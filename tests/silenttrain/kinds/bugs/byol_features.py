"""BYOL on noisy views of clustered vectors, judged with a linear probe."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
centers = torch.randn(6, 24)
labels = torch.randint(6, (1800,))
data = centers[labels] + 0.8 * torch.randn(1800, 24)
train_x, test_x = data[:1400], data[1400:]
train_y, test_y = labels[:1400], labels[1400:]


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


def augment(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.2 * torch.randn_like(x)


class BYOL(nn.Module):
    def __init__(self, dim=24, hidden=64, out=16, momentum=0.99):
        super().__init__()
        self.momentum = momentum
        self.online = mlp(dim, hidden, out)
        self.predictor = mlp(out, 32, out)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def update_target(self):
        for online, target in zip(self.online.parameters(), self.target.parameters()):
            target.data = self.momentum * online.data + (1 - self.momentum) * target.data

    def regress(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=-1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=-1)
        return 2 - 2 * (p * z).sum(-1)

    def forward(self, a, b):
        return (self.regress(a, b) + self.regress(b, a)).mean()


model = BYOL()
trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(trainable, lr=2e-3)
for epoch in range(10):
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(100):
        x = train_x[idx]
        loss = model(augment(x), augment(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_target()
        total += loss.item() * len(idx)
    print(f"epoch {epoch}  byol loss {total / len(train_x):.4f}")

model.eval()
with torch.no_grad():
    f_train, f_test = model.online(train_x), model.online(test_x)
    gap = max((a - b).abs().max().item() for a, b in zip(model.online.parameters(), model.target.parameters()))
probe = nn.Linear(16, 6)
opt = torch.optim.Adam(probe.parameters(), lr=0.05)
for _ in range(100):
    loss = F.cross_entropy(probe(f_train), train_y)
    opt.zero_grad()
    loss.backward()
    opt.step()
acc = (probe(f_test).argmax(1) == test_y).float().mean().item()
print(f"online/target gap {gap:.4f}  probe accuracy {acc:.3f}")
