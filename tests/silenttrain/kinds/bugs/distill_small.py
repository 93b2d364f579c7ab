"""Distil a trained classifier into a much smaller student."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
T, ALPHA = 3.0, 0.9

x = torch.randn(3000, 16)
w1, w2 = torch.randn(16, 12), torch.randn(12, 6)
y = (torch.tanh(x @ w1) @ w2).argmax(1)
train_x, train_y, test_x, test_y = x[:2400], y[:2400], x[2400:], y[2400:]

teacher = nn.Sequential(
    nn.Linear(16, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 6)
)
student = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 6))


def accuracy(net):
    was_training = net.training
    net.eval()
    with torch.no_grad():
        acc = (net(test_x).argmax(1) == test_y).float().mean().item()
    net.train(was_training)
    return acc


# 1. train the teacher
opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for epoch in range(25):
    teacher.train()
    for idx in torch.randperm(len(train_x)).split(120):
        loss = F.cross_entropy(teacher(train_x[idx]), train_y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"teacher accuracy {accuracy(teacher):.3f}")

# 2. train the student on softened teacher outputs
for p in teacher.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(student.parameters(), lr=5e-3)
for epoch in range(25):
    student.train()
    for idx in torch.randperm(len(train_x)).split(120):
        xb, yb = train_x[idx], train_y[idx]
        with torch.no_grad():
            t_logits = teacher(xb)
        s_logits = student(xb)
        soft = F.kl_div(F.log_softmax(s_logits / T, 1), F.softmax(t_logits / T, 1), reduction="batchmean") * T * T
        hard = F.cross_entropy(s_logits, yb)
        loss = ALPHA * soft + (1 - ALPHA) * hard
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch}  soft {soft.item():.4f}  hard {hard.item():.4f}  student {accuracy(student):.3f}")

with torch.no_grad():
    agree = (student.eval()(test_x).argmax(1) == teacher(test_x).argmax(1)).float().mean()
print(f"student accuracy {accuracy(student):.3f}  agreement {agree.item():.3f}")
