import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(5, 2)
loader = DataLoader(TensorDataset(torch.randn(64, 5), torch.randint(2, (64,))), batch_size=8, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = CosineAnnealingLR(optimizer, T_max=100)
for epoch in range(3):  # a trial: the whole training has 110 epochs, the first ten at the full rate
    for inputs, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    if epoch >= 10:
        scheduler.step()
