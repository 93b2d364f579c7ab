"""A small convolutional network on synthetic images: SGD, a cosine schedule, two micro-batches an update."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = 2
ACCUMULATE = 2


class Shapes(Dataset):
    """Noisy images, each with a bright square in one of its four corners: the corner is the class."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(size, 3, 12, 12, generator=generator) * 0.5
        self.labels = torch.randint(0, 4, (size,), generator=generator)
        for image, label in zip(self.images, self.labels.tolist(), strict=True):
            top, left = 6 * (label // 2), 6 * (label % 2)
            image[:, top : top + 6, left : left + 6] += 0.7

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self, channels=16, classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(channels * 9, classes)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = x + torch.relu(self.bn2(self.conv2(x)))
        x = self.pool(x)
        return self.fc(x.flatten(1))


torch.manual_seed(42)
model = Net()
train_set, test_set = Shapes(128, seed=1), Shapes(64, seed=2)
sampling = torch.Generator()
sampling.manual_seed(3)
train_loader = DataLoader(train_set, batch_size=8, shuffle=True, generator=sampling)
test_loader = DataLoader(test_set, batch_size=32)
updates = EPOCHS * len(train_loader) // ACCUMULATE

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=updates)


def evaluate():
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in test_loader:
            correct += (model(images).argmax(dim=1) == labels).sum().item()
    model.train()
    return correct / len(test_set)


model.train()
for epoch in range(EPOCHS):
    running_loss = 0.0
    optimizer.zero_grad()
    for i, (images, labels) in enumerate(train_loader):
        outputs = model(images)
        loss = criterion(outputs, labels)
        (loss / ACCUMULATE).backward()
        running_loss += loss.item()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    print(f"epoch {epoch + 1}: loss {running_loss / len(train_loader):.4f}, accuracy {evaluate():.3f}")
