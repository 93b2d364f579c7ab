import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATION = 4

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(80, 4), torch.randint(2, (80,)))
loader = DataLoader(dataset, batch_size=8, shuffle=True)  # 10 batches: two windows of 4, and 2 more
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    optimizer.zero_grad()  # found
    for step, (inputs, labels) in enumerate(loader, start=1):
        loss = cross_entropy(model(inputs), labels)
        (loss / ACCUMULATION).backward()
        if step % ACCUMULATION == 0:
            optimizer.step()
            optimizer.zero_grad()
