"""House-price style regression with whole-tensor shuffling at the start of each epoch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
N_TRAIN, N_TEST, BATCH = 1200, 400, 40


def houses(n):
    area = 50 + 150 * torch.rand(n)
    rooms = (area / 30 + torch.randn(n)).round().clamp(1, 8)
    age = 60 * torch.rand(n)
    distance = 20 * torch.rand(n)
    price = 3.0 * area + 12 * rooms - 1.5 * age - 4 * distance + 0.02 * area * (20 - distance)
    return torch.stack([area, rooms, age, distance], 1), price + 15 * torch.randn(n)


features, prices = houses(N_TRAIN)
test_features, test_prices = houses(N_TEST)

f_mean, f_std = features.mean(0), features.std(0)
p_mean, p_std = prices.mean(), prices.std()
features, test_features = (features - f_mean) / f_std, (test_features - f_mean) / f_std
targets = (prices - p_mean) / p_std

net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.05), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)

for epoch in range(20):
    net.train()
    features = features[torch.randperm(N_TRAIN)]
    targets = targets[torch.randperm(N_TRAIN)]
    total = 0.0
    for i in range(0, N_TRAIN, BATCH):
        pred = net(features[i : i + BATCH]).squeeze(1)
        loss = F.huber_loss(pred, targets[i : i + BATCH])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    sched.step()
    if epoch % 4 == 0:
        print(f"epoch {epoch} huber {total / (N_TRAIN // BATCH):.4f}")

net.eval()
with torch.no_grad():
    pred = net(test_features).squeeze(1) * p_std + p_mean
mae = (pred - test_prices).abs().mean().item()
r2 = 1 - ((pred - test_prices) ** 2).sum() / ((test_prices - test_prices.mean()) ** 2).sum()
print(f"test mae {mae:.1f}, r2 {r2.item():.3f}")
