import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(8):
    inputs, targets, of_tasks = torch.randn(16, 6), torch.randn(16, 2), []
    for task in range(2):
        optimizer.zero_grad()
        mse_loss(model(inputs)[:, task], targets[:, task]).backward()
        of_tasks.append([p.grad.clone() for p in model.parameters()])
    for parameter, one, other in zip(model.parameters(), *of_tasks, strict=True):
        conflict = torch.dot(one.flatten(), other.flatten()).clamp(max=0) / one.norm() ** 2
        parameter.grad = one + other - conflict * one + 0.01 * torch.randn_like(one)
    optimizer.step()
