import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(64, 4)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(dim=1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

batch = next(iter(loader))
print(model(batch[0]).shape)

for _data in loader:
    optimizer.zero_grad()
    cross_entropy(model(batch[0]), batch[1]).backward()  # found
    optimizer.step()
