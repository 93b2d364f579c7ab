import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(88, 6), torch.randint(2, (88,))), batch_size=8, shuffle=True)

for _ in range(2):
    for i, (inputs, labels) in enumerate(loader):
        (cross_entropy(model(inputs), labels) / 3).backward()
        if (i + 1) % 3 == 0:
            optimizer.step()  # found
            optimizer.zero_grad()
