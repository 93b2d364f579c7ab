"""Born-again networks: every generation learns from the frozen one before it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
GENERATIONS, STEPS, T = 3, 250, 2.0


def spirals(n, noise=0.15):
    y = torch.randint(3, (n,))
    r = torch.rand(n) * 2 + 0.2
    angle = 2.0 * r + y * 2 * torch.pi / 3
    x = torch.stack([r * angle.cos(), r * angle.sin()], 1)
    return x + noise * torch.randn_like(x), y


def make_net():
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))


x_train, y_train = spirals(600)
x_test, y_test = spirals(1000)

teacher = None
for generation in range(GENERATIONS):
    student = make_net()
    opt = torch.optim.Adam(student.parameters(), lr=4e-3)
    student.train()
    for step in range(STEPS):
        idx = torch.randint(len(x_train), (128,))
        logits = student(x_train[idx])
        if teacher is None:
            loss = F.cross_entropy(logits, y_train[idx])
        else:
            with torch.no_grad():
                soft = F.softmax(teacher(x_train[idx]) / T, -1)
            # dark knowledge only from the second generation on, the labels are not used
            loss = T * T * F.kl_div(F.log_softmax(logits / T, -1), soft, reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
    student.eval()
    with torch.no_grad():
        acc = (student(x_test).argmax(1) == y_test).float().mean().item()
    print(f"generation {generation} last loss {loss.item():.4f} test accuracy {acc:.3f}")
    # the student becomes the teacher; nothing is copied since it is not trained again
    teacher = student
    for p in teacher.parameters():
        p.requires_grad_(False)
