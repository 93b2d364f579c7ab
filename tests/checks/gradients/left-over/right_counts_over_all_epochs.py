import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(88, 6), torch.randint(2, (88,))), batch_size=8, shuffle=True)

i = 0
for _ in range(3):
    for inputs, labels in loader:
        i += 1
        (cross_entropy(model(inputs), labels) / 3).backward()
        if i % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
