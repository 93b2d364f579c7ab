"""SimSiam: one encoder for both views, stop-gradient instead of a momentum copy."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
DIM, K = 32, 6
centers = 0.7 * torch.randn(K, DIM)


def draw(n):
    y = torch.randint(K, (n,))
    return centers[y] + 0.6 * torch.randn(n, DIM), y


def view(x):
    return x * (torch.rand_like(x) > 0.2) + 0.2 * torch.randn_like(x)


encoder = nn.Sequential(
    nn.Linear(DIM, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32, affine=False)
)
predictor = nn.Sequential(nn.Linear(32, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 32))
target_encoder = encoder  # weights are shared by design, see Chen & He 2021

x_train, y_train = draw(1500)
x_test, y_test = draw(500)
opt = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.1, momentum=0.9, weight_decay=1e-4)


def knn_accuracy():
    encoder.eval()
    with torch.no_grad():
        bank, z = F.normalize(encoder(x_train), dim=1), F.normalize(encoder(x_test), dim=1)
    encoder.train()
    votes = y_train[(z @ bank.T).topk(11, dim=1).indices].mode(1).values
    return (votes == y_test).float().mean().item(), z.std(0).mean().item()


print("before: knn %.3f, std %.3f" % knn_accuracy())
for epoch in range(15):
    total, steps = 0.0, 0
    for idx in torch.randperm(len(x_train)).split(128):
        if len(idx) < 128:
            continue
        v1, v2 = view(x_train[idx]), view(x_train[idx])
        z1, z2 = encoder(v1), encoder(v2)
        t1, t2 = target_encoder(v1).detach(), target_encoder(v2).detach()
        loss = -0.5 * (F.cosine_similarity(predictor(z1), t2).mean() + F.cosine_similarity(predictor(z2), t1).mean())
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, steps = total + loss.item(), steps + 1
    if epoch % 5 == 0:
        print(f"epoch {epoch} loss {total / steps:.4f}")
print("after: knn %.3f, std %.3f" % knn_accuracy())
