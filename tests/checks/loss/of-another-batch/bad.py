import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(64, 6), torch.arange(64) % 3)
loader = DataLoader(dataset, batch_size=16, shuffle=True)

inputs, labels = next(iter(loader))  # to see how large the model must be
model = torch.nn.Linear(inputs.shape[1], int(labels.max()) + 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(3):
    for inputs, _ in loader:
        loss = cross_entropy(model(inputs), labels)  # found
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
