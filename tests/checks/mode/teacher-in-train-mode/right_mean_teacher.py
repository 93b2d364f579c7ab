import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 3))
teacher = copy.deepcopy(student).requires_grad_(False)  # its noise is wanted
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)

for _ in range(20):
    inputs = torch.randn(32, 8)
    with torch.no_grad():
        likely = teacher(inputs).softmax(1)
    logits = student(inputs)
    loss = cross_entropy(logits[:8], inputs[:8, :3].argmax(1)) + mse_loss(logits.softmax(1), likely)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mean, now in zip(teacher.parameters(), student.parameters(), strict=True):
            mean.lerp_(now, 0.01)
