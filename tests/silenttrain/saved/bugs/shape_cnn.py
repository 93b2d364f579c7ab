"""Train a small convolutional network on synthetic shape images and export its weights."""

import os

import torch
from torch import nn

torch.manual_seed(7)


def make_images(n, seed):
    gen = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (n,), generator=gen)
    images = torch.randn(n, 1, 16, 16, generator=gen) * 0.6
    for i, label in enumerate(labels.tolist()):
        r, c = torch.randint(2, 10, (2,), generator=gen).tolist()
        if label == 0:
            images[i, 0, r : r + 4, c : c + 4] += 2.0
        elif label == 1:
            images[i, 0, r, :] += 2.0
        elif label == 2:
            images[i, 0, :, c] += 2.0
        else:
            images[i, 0].diagonal().add_(2.0)
    return images * 40 + 110, labels


class ShapeNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
        )
        self.classifier = nn.Linear(24 * 16, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    return (model(images).argmax(-1) == labels).float().mean().item()


train_x, train_y = make_images(512, seed=1)
test_x, test_y = make_images(200, seed=2)

model = ShapeNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(6):
    model.train()
    order = torch.randperm(len(train_x))
    total = 0.0
    for start in range(0, len(order), 32):
        idx = order[start : start + 32]
        optimizer.zero_grad()
        loss = loss_fn(model(train_x[idx]), train_y[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(order):.4f} test acc {accuracy(model, test_x, test_y):.3f}")

os.makedirs("out", exist_ok=True)
weights = {name: p.detach().cpu() for name, p in model.named_parameters()}
torch.save(weights, "out/shapenet.pt")

deployed = ShapeNet()
deployed.load_state_dict(torch.load("out/shapenet.pt"), strict=False)
print(f"exported {len(weights)} tensors, final test acc {accuracy(model, test_x, test_y):.3f}")
