import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
inputs = torch.randn(120, 7)
labels = (inputs.sum(dim=1) > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(7, 24), torch.nn.ReLU(), torch.nn.Linear(24, 2))

for epoch in range(12):
    loss = cross_entropy(model(inputs), labels)
    loss.backward()  # found
    with torch.no_grad():
        for p in model.parameters():
            p = p - 0.2 * p.grad
    model.zero_grad()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
