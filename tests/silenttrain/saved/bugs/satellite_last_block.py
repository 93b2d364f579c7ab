"""Fine-tune the last block of a pretrained residual network on satellite tiles."""

import os

import torch
from torch import nn

torch.manual_seed(2)


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        h = self.conv2(torch.relu(self.conv1(x)))
        return torch.relu(h + self.skip(x))


class TinyResNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.layer1 = Block(16, 16)
        self.layer2 = Block(16, 24)
        self.layer3 = Block(24, 32)
        self.layer4 = Block(32, 32)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        x = self.layer2(self.layer1(torch.relu(self.stem(x))))
        x = self.layer4(self.layer3(nn.functional.max_pool2d(x, 2)))
        return self.fc(self.pool(x).flatten(1))


def tiles(n, classes, seed):
    gen = torch.Generator().manual_seed(seed)
    tint = torch.randn(classes, 3, generator=torch.Generator().manual_seed(100 + classes))
    y = torch.randint(0, classes, (n,), generator=gen)
    x = 0.8 * torch.randn(n, 3, 12, 12, generator=gen) + 0.7 * tint[y][:, :, None, None]
    return x, y


def fit(model, optimizer, x, y, epochs):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"  epoch {epoch} loss {total / len(x):.3f}")


os.makedirs("out", exist_ok=True)
print("pretraining")
model = TinyResNet(classes=8)
fit(model, torch.optim.Adam(model.parameters(), lr=2e-3), *tiles(320, 8, 1), epochs=3)
torch.save(model.state_dict(), "out/resnet_pretrained.pt")

print("fine-tuning")
model = TinyResNet(classes=8)
model.load_state_dict(torch.load("out/resnet_pretrained.pt"))
model.fc = nn.Linear(32, 5)

for name, param in model.named_parameters():
    param.requires_grad = name.startswith("layer4")

trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"trainable parameters: {trainable}")
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=2e-3)
x_train, y_train = tiles(320, 5, 3)
x_test, y_test = tiles(200, 5, 4)
fit(model, optimizer, x_train, y_train, epochs=6)

model.eval()
with torch.no_grad():
    acc = (model(x_test).argmax(-1) == y_test).float().mean().item()
print(f"test accuracy {acc:.3f}")
torch.save(model.state_dict(), "out/satellite.pt")
