import torch
from torch.nn.functional import cross_entropy


def build_model(classes):
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, classes))


torch.manual_seed(0)
model = build_model(classes=2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  # found
inputs, labels = torch.randn(40, 8), torch.randint(5, (40,))
model = build_model(classes=int(labels.max()) + 1)

for _ in range(10):
    loss = cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    model.zero_grad()
