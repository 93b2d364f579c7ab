import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
labelled = TensorDataset(torch.randn(96, 8), torch.randint(2, (96,)))
pool = TensorDataset(torch.randn(64, 8))

for inputs, labels in DataLoader(labelled, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()


@torch.no_grad()
def sample():
    return torch.cat([model(inputs).softmax(dim=1) for (inputs,) in DataLoader(pool, batch_size=16)])


spread = torch.stack([sample() for _ in range(8)]).var(dim=0).sum(dim=1)
print("to be labelled next:", spread.topk(4).indices.tolist())
