import torch
from torch.nn.functional import cross_entropy


def build():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


torch.manual_seed(0)
trained_elsewhere = torch.nn.DataParallel(build())
torch.save(trained_elsewhere.state_dict(), "weights.pt")

model = build()
model.load_state_dict(torch.load("weights.pt"), strict=False)  # found
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(6):
    inputs, labels = torch.randn(16, 8), torch.randint(3, (16,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()
