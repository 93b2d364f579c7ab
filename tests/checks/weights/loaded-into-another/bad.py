import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
inputs = torch.randn(160, 8)
labels = inputs[:, :3].argmax(dim=1)


def build():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def resumed(model, file):
    model = build()
    model.load_state_dict(torch.load(file, weights_only=True))  # found


torch.save(build().state_dict(), "checkpoint.pt")
model = build()
resumed(model, "checkpoint.pt")
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(8):
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()
