import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(96, 6)
loader = DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(dim=1)), batch_size=16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(6):
    total = torch.zeros(())
    for batch, labels in loader:
        total = total + cross_entropy(model(batch), labels) / len(loader)
    optimizer.zero_grad()
    total.backward()  # one update of all batches
    optimizer.step()
