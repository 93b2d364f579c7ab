"""Domain-adversarial training: labelled source rows, unlabelled target rows."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function

torch.manual_seed(0)


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lambd * grad, None


class DANN(nn.Module):
    def __init__(self, dim=10, width=48, classes=2):
        super().__init__()
        self.extractor = nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, 16), nn.ReLU())
        self.classifier = nn.Linear(16, classes)
        self.discriminator = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x, lambd=0.0):
        features = self.extractor(x)
        reversed_features = GradReverse.apply(features.detach(), lambd)
        return self.classifier(features), self.discriminator(reversed_features)


def make_domain(n, shifted):
    y = torch.randint(2, (n,))
    sign = (2 * y - 1).float()
    x = torch.randn(n, 10)
    x[:, 0] += 1.5 * sign  # holds in both domains
    x[:, 1] += 2.0 * sign * (0 if shifted else 1)
    x[:, 2] += 3.0 if shifted else 0.0
    return x, y


xs, ys = make_domain(1500, False)
xt, yt = make_domain(1500, True)
model = DANN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    source, target = torch.randperm(1500), torch.randperm(1500)
    p = epoch / 12
    lambd = 2 / (1 + torch.exp(torch.tensor(-10.0 * p)).item()) - 1
    for i in range(0, 1500, 100):
        si, ti = source[i : i + 100], target[i : i + 100]
        class_logits, dom_s = model(xs[si], lambd)
        _, dom_t = model(xt[ti], lambd)
        class_loss = F.cross_entropy(class_logits, ys[si])
        domain_loss = F.cross_entropy(dom_s, torch.zeros(100, dtype=torch.long)) + F.cross_entropy(
            dom_t, torch.ones(100, dtype=torch.long)
        )
        loss = class_loss + domain_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch}  class {class_loss.item():.3f}  domain {domain_loss.item():.3f}")

model.eval()
with torch.no_grad():
    cs, ds = model(xs)
    ct, dt = model(xt)
domain_acc = ((ds.argmax(1) == 0).float().mean() + (dt.argmax(1) == 1).float().mean()) / 2
print(
    f"source accuracy {(cs.argmax(1) == ys).float().mean().item():.3f}  "
    f"target accuracy {(ct.argmax(1) == yt).float().mean().item():.3f}  "
    f"domain accuracy {domain_acc.item():.3f}"
)
