"""Leaf images: random flips and noise in training, predictions averaged over the flips at test time."""

import torch
from torch import nn

torch.manual_seed(0)
SIZE, SPECIES = 14, 4


def leaves(n):
    label = torch.randint(0, SPECIES, (n,))
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing="ij")
    width = torch.tensor([0.25, 0.45, 0.65, 0.45])[label][:, None, None]
    teeth = torch.tensor([0.0, 0.0, 0.0, 0.25])[label][:, None, None]
    tilt = 0.3 * torch.randn(n, 1, 1)
    edge = width * (1 - yy**2) + teeth * torch.sin(9 * yy)
    shape = torch.sigmoid(12 * (edge - (xx - tilt * yy).abs()))
    return (shape + 0.35 * torch.randn(n, SIZE, SIZE)).unsqueeze(1), label


def augment(x):
    if torch.rand(()) < 0.5:
        x = x.flip(-1)
    if torch.rand(()) < 0.5:
        x = x.flip(-2)
    return x + 0.1 * torch.randn_like(x)


VIEWS = (lambda x: x, lambda x: x.flip(-1), lambda x: x.flip(-2), lambda x: x.flip(-1, -2))


@torch.no_grad()
def predict(model, x):
    model.eval()
    return torch.stack([model(view(x)).softmax(1) for view in VIEWS]).mean(0)


x_train, y_train = leaves(900)
x_test, y_test = leaves(400)
mean, std = x_train.mean(), x_train.std()
x_train, x_test = (x_train - mean) / std, (x_test - mean) / std
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(3),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(288, SPECIES),
)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(9):
    model.train()
    for rows in torch.randperm(len(x_train)).split(60):
        loss = nn.functional.cross_entropy(model(augment(x_train[rows])), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

averaged = (predict(model, x_test).argmax(1) == y_test).float().mean()
with torch.no_grad():
    single = (model(x_test).argmax(1) == y_test).float().mean()
print(f"test accuracy: one view {single:.3f}, four views averaged {averaged:.3f}")
