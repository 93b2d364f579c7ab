import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
teacher = copy.deepcopy(student).requires_grad_(False).eval()
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)

for _ in range(60):
    inputs = torch.randn(32, 8) + 2
    with torch.no_grad():
        likely = teacher(inputs).softmax(1)
    logits = student(inputs)
    loss = cross_entropy(logits, inputs[:, :3].argmax(1)) + mse_loss(logits.softmax(1), likely)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mean, now in zip(teacher.parameters(), student.parameters(), strict=True):
            mean.lerp_(now, 0.05)
        for kept, now in zip(teacher.buffers(), student.buffers(), strict=True):
            kept.copy_(now)
