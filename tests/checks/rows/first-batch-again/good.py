import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

STEPS = 12

torch.manual_seed(0)
train_set = TensorDataset(torch.randn(96, 6), torch.randint(3, (96,)))
train_loader = DataLoader(train_set, batch_size=8)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

batches = iter(train_loader)
for _ in range(STEPS):
    x, y = next(batches)
    loss = cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
