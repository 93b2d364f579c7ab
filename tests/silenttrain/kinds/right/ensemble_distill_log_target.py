"""Distil an ensemble into one network with KLDivLoss in log space on both sides."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(5)
CLASSES, FEATURES = 5, 16
CENTRES = 1.2 * torch.randn(CLASSES, FEATURES)


def crops(n):
    y = torch.randint(0, CLASSES, (n,))
    return CENTRES[y] + 1.3 * torch.randn(n, FEATURES), y


def network(width):
    return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, CLASSES))


def train(net, loss_of, steps, x):
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (100,))
        loss = loss_of(net, rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


x, y = crops(800)
x_test, y_test = crops(600)
teachers = [network(64) for _ in range(3)]
for i, teacher in enumerate(teachers):
    last = train(teacher, lambda net, rows: functional.cross_entropy(net(x[rows]), y[rows]), 30, x)
    print(f"teacher {i}: loss {last:.4f}")

with torch.no_grad():
    log_soft = torch.stack([t(x).log_softmax(1) for t in teachers]).logsumexp(0) - torch.tensor(3.0).log()
    log_soft_test = torch.stack([t(x_test).log_softmax(1) for t in teachers]).logsumexp(0) - torch.tensor(3.0).log()

criterion = nn.KLDivLoss(reduction="batchmean", log_target=True)
student = network(12)
last = train(student, lambda net, rows: criterion(net(x[rows]).log_softmax(1), log_soft[rows]), 100, x)
print(f"student: divergence {last:.4f}")

with torch.no_grad():
    log_student = student(x_test).log_softmax(1)
divergence = criterion(log_student, log_soft_test)
accuracy = (log_student.argmax(1) == y_test).float().mean()
ensemble = (log_soft_test.argmax(1) == y_test).float().mean()
print(f"test: divergence {divergence:.4f}, accuracy {accuracy:.3f} (ensemble {ensemble:.3f})")
