import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(8):
    inputs, labels = torch.randn(16, 6), torch.randint(2, (16,))
    outputs, norms = model(inputs), []
    losses = [nn.functional.cross_entropy(outputs[:, :2], labels), outputs[:, 2].pow(2).mean()]
    for loss in losses:
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        norms.append(model[0].weight.grad.norm())
    optimizer.zero_grad()
    (losses[0] / norms[0] + losses[1] / norms[1]).backward()
    optimizer.step()
