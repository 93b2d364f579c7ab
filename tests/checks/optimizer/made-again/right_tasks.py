import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(8, 2)


def learn(loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for inputs, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()


for _ in range(3):
    learn(DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(2, (64,))), batch_size=8, shuffle=True))
