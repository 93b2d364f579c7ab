"""Three-arm spiral classification with a softmax network."""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)


def spiral(n, arms=3, noise=0.15):
    label = torch.randint(arms, (n,))
    r = torch.rand(n)
    angle = 3.5 * r + 2 * math.pi * label / arms + noise * torch.randn(n)
    return torch.stack([r * angle.cos(), r * angle.sin()], 1), label


train_x, train_y = spiral(1200)
test_x, test_y = spiral(600)

model = nn.Sequential(
    nn.Linear(2, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 3),
    nn.Softmax(dim=1),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(20):
    model.train()
    total, correct = 0.0, 0
    for idx in torch.randperm(len(train_x)).split(60):
        output = model(train_x[idx])
        loss = criterion(output, train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
        correct += (output.argmax(1) == train_y[idx]).sum().item()
    if epoch % 4 == 3:
        print(f"epoch {epoch:2d}  loss {total / len(train_x):.4f}  accuracy {correct / len(train_x):.3f}")

model.eval()
with torch.no_grad():
    output = model(test_x)
    test_loss = criterion(output, test_y).item()
    accuracy = (output.argmax(1) == test_y).float().mean().item()
print(f"test loss {test_loss:.4f}  test accuracy {accuracy:.3f}")
