"""Knowledge distillation with a KL term next to the hard-label loss."""

import torch
import torch.nn as nn

torch.manual_seed(0)
DIM, CLASSES, T, ALPHA = 24, 6, 3.0, 0.9
means = 0.8 * torch.randn(CLASSES, DIM)


def make(n):
    y = torch.randint(CLASSES, (n,))
    return means[y] + torch.randn(n, DIM), y


def fit(net, x, y, loss_fn, steps=300, lr=3e-3):
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    net.train()
    for step in range(steps):
        idx = torch.randint(len(x), (64,))
        loss = loss_fn(net, x[idx], y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"  step {step} loss {loss.item():.4f}")


@torch.no_grad()
def evaluate(net, x, y):
    net.eval()
    logits = net(x)
    return (logits.argmax(1) == y).float().mean().item(), ce(logits, y).item()


ce = nn.CrossEntropyLoss()
kl = nn.KLDivLoss(reduction="batchmean")
softmax = nn.Softmax(dim=1)

x_big, y_big = make(4000)
x_small, y_small = make(120)
x_test, y_test = make(2000)

teacher = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, CLASSES))
print("teacher")
fit(teacher, x_big, y_big, lambda net, x, y: ce(net(x), y))
teacher.eval()


def distillation_loss(net, x, y):
    logits = net(x)
    with torch.no_grad():
        teacher_logits = teacher(x)
    soft = kl(softmax(logits / T), softmax(teacher_logits / T))
    return ALPHA * T * T * soft + (1 - ALPHA) * ce(logits, y)


student = nn.Sequential(nn.Linear(DIM, 16), nn.ReLU(), nn.Linear(16, CLASSES))
print("student")
fit(student, x_small, y_small, distillation_loss)
print("teacher test accuracy %.3f nll %.3f" % evaluate(teacher, x_test, y_test))
print("student test accuracy %.3f nll %.3f" % evaluate(student, x_test, y_test))
