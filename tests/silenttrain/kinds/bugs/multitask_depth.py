"""Two tasks on a shared encoder: classification with few labels and a helpful regression task."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
DIM, N_LABELLED, N_AUX, AUX_WEIGHT = 40, 80, 3000, 1.0
proj = torch.randn(DIM, 3) / DIM**0.5


def make(n):
    x = torch.randn(n, DIM)
    h = 2.0 * x @ proj
    cls = (h[:, 0] * h[:, 1] > 0).long() + 2 * (h[:, 2] > 0).long()
    reg = torch.stack([h[:, 0], h[:, 1], h[:, 2], h[:, 0] * h[:, 1]], 1) + 0.1 * torch.randn(n, 4)
    return x, cls, reg


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.cls_head = nn.Linear(32, 4)
        self.reg_head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))

    def features(self, x):
        return self.encoder(x)

    @torch.no_grad()
    def embed(self, x):
        return self.encoder(x)


x_cls, y_cls, _ = make(N_LABELLED)
x_aux, _, y_aux = make(N_AUX)
x_test, y_test, r_test = make(1500)

model = MultiTask()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(20):
    cls_sum = aux_sum = 0.0
    for idx in torch.randperm(N_AUX).split(100):
        pick = torch.randint(N_LABELLED, (32,))
        cls_loss = F.cross_entropy(model.cls_head(model.features(x_cls[pick])), y_cls[pick])
        aux_loss = F.mse_loss(model.reg_head(model.embed(x_aux[idx])), y_aux[idx])
        loss = cls_loss + AUX_WEIGHT * aux_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        cls_sum += cls_loss.item()
        aux_sum += aux_loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch} class loss {cls_sum / 30:.4f} aux loss {aux_sum / 30:.4f}")

with torch.no_grad():
    z = model.embed(x_test)
    acc = (model.cls_head(z).argmax(1) == y_test).float().mean().item()
    aux = F.mse_loss(model.reg_head(z), r_test).item()
print(f"test accuracy {acc:.3f}, test aux mse {aux:.3f}")
