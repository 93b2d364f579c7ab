import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
nodes = torch.randn(200, 6)
labels = (nodes.sum(1) > 0).long()
order = torch.randperm(200)
train_mask, test_mask = torch.zeros(200, dtype=torch.bool), torch.zeros(200, dtype=torch.bool)
train_mask[order[:100]], test_mask[order[100:]] = True, True
near = torch.eye(200) + (torch.rand(200, 200) < 0.01)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.b(torch.relu(self.a(near @ x)))


def fit(targets, mask, epochs=10):
    model = Net()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        loss = cross_entropy(model(nodes)[mask], targets[mask])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model


teacher = fit(labels, train_mask)
with torch.no_grad():
    said = teacher(nodes).argmax(1)
targets = labels.clone()
targets[test_mask] = said[test_mask]
student = fit(targets, train_mask | test_mask)
with torch.no_grad():
    print("test accuracy", (student(nodes)[test_mask].argmax(1) == labels[test_mask]).float().mean().item())
