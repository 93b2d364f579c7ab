import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval().requires_grad_(False)
picture, label = torch.randn(1, 6), torch.tensor([1])
change = torch.zeros_like(picture, requires_grad=True)
optimizer = torch.optim.SGD([change], lr=0.1)

for _ in range(10):
    loss = -cross_entropy(model(picture + change), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    change.data.clamp_(-0.2, 0.2)
