import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(96, 6)
loader = DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(dim=1)), batch_size=16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.ReLU(), torch.nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(2):
    for batch, labels in loader:
        loss = cross_entropy(model(batch), labels) / len(loader)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
