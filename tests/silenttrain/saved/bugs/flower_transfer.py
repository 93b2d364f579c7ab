"""Transfer a small pretrained image network to a new set of classes."""

import os

import torch
from torch import nn

torch.manual_seed(0)


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.layer1 = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.layer2 = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.fc = nn.Linear(128, classes)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(self.stem(x))).flatten(1))


def make_flowers(n, classes, seed):
    gen = torch.Generator().manual_seed(seed)
    palette = torch.rand(classes, 3, generator=torch.Generator().manual_seed(classes))
    y = torch.randint(0, classes, (n,), generator=gen)
    x = torch.randn(n, 3, 12, 12, generator=gen) * 0.35
    x[:, :, 3:9, 3:9] += palette[y][:, :, None, None]
    return x, y


def run_epoch(model, optimizer, x, y, batch=32):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(batch):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


os.makedirs("out", exist_ok=True)

# a stand-in for the published 10-class checkpoint
pretrain_x, pretrain_y = make_flowers(400, 10, seed=3)
source = Backbone(10)
opt = torch.optim.Adam(source.parameters(), lr=2e-3)
for _ in range(3):
    run_epoch(source, opt, pretrain_x, pretrain_y)
torch.save(source.state_dict(), "out/published.pt")

# fine-tune on our six classes
train_x, train_y = make_flowers(384, 6, seed=11)
val_x, val_y = make_flowers(200, 6, seed=12)

model = Backbone(10)
model.load_state_dict(torch.load("out/published.pt"))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)

num_features = model.fc.in_features
model.fc = nn.Linear(num_features, 6)

for epoch in range(8):
    loss = run_epoch(model, optimizer, train_x, train_y)
    scheduler.step()
    print(f"epoch {epoch}: loss {loss:.3f}, val acc {evaluate(model, val_x, val_y):.3f}")

torch.save(model.state_dict(), "out/flowers6.pt")
print("saved out/flowers6.pt")
