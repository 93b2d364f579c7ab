"""Distil a wide classifier into a narrow one by the Kullback-Leibler divergence of their outputs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
CLASSES, PIXELS, TEMPERATURE = 8, 64, 2.0
PROTOTYPES = torch.randn(CLASSES, PIXELS)


def digits(n):
    label = torch.randint(0, CLASSES, (n,))
    mix = 0.25 * torch.rand(n, 1)
    other = PROTOTYPES[torch.randint(0, CLASSES, (n,))]
    return (1 - mix) * PROTOTYPES[label] + mix * other + 1.8 * torch.randn(n, PIXELS), label


x_train, y_train = digits(1500)
x_test, y_test = digits(600)

teacher = nn.Sequential(nn.Linear(PIXELS, 128), nn.ReLU(), nn.Linear(128, CLASSES))
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(60):
    rows = torch.randint(0, len(x_train), (100,))
    loss = nn.functional.cross_entropy(teacher(x_train[rows]), y_train[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
teacher.eval()

student = nn.Sequential(nn.Linear(PIXELS, 16), nn.ReLU(), nn.Linear(16, CLASSES))
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
criterion = nn.KLDivLoss(reduction="batchmean")
loader = DataLoader(TensorDataset(x_train), batch_size=100, shuffle=True)
for epoch in range(9):
    total = 0.0
    for (x,) in loader:
        with torch.no_grad():
            soft = torch.softmax(teacher(x) / TEMPERATURE, dim=1)
        guess = torch.softmax(student(x) / TEMPERATURE, dim=1)
        loss = criterion(guess, soft) * TEMPERATURE**2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    if epoch % 2 == 0:
        print(f"epoch {epoch}: loss {total / len(x_train):.4f}")

student.eval()
with torch.no_grad():
    teacher_hat, student_hat = teacher(x_test), student(x_test)
agree = (teacher_hat.argmax(1) == student_hat.argmax(1)).float().mean()
teacher_acc = (teacher_hat.argmax(1) == y_test).float().mean()
student_acc = (student_hat.argmax(1) == y_test).float().mean()
gap = (student_hat.softmax(1) - teacher_hat.softmax(1)).abs().sum(1).mean() / 2
print(f"accuracy: teacher {teacher_acc:.3f}, student {student_acc:.3f}; agreement {agree:.3f}, distance {gap:.3f}")
