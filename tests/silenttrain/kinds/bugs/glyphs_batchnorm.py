"""Recognise noisy glyphs with a convolutional network that has batch normalisation; test files come class by class."""

import torch
from torch import nn

torch.manual_seed(0)
SIZE, CLASSES = 12, 5
GLYPHS = (torch.rand(CLASSES, SIZE, SIZE) < 0.35).float()
INK = torch.tensor([0.6, 0.9, 1.2, 1.5, 1.8])


def draw(label):
    image = GLYPHS[label] * INK[label][:, None, None]
    return (image + 0.9 * torch.randn(len(label), SIZE, SIZE)).unsqueeze(1)


class GlyphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(128, CLASSES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


y_train = torch.randint(0, CLASSES, (960,))
x_train = draw(y_train)
test_files = {c: draw(torch.full((40,), c)) for c in range(CLASSES)}

model = GlyphNet()
model.train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(10):
    correct = 0
    for rows in torch.randperm(len(x_train)).split(64):
        logits = model(x_train[rows])
        loss = loss_fn(logits, y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (logits.argmax(1) == y_train[rows]).sum().item()
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}, train accuracy {correct / len(x_train):.3f}")

right = 0
with torch.no_grad():
    for label, images in test_files.items():
        hits = (model(images).argmax(1) == label).sum().item()
        print(f"  class {label}: {hits} of {len(images)}")
        right += hits
print(f"test accuracy {right / (40 * CLASSES):.3f}")
