import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(40, 6)
loader = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=8, shuffle=True)
model = nn.Linear(6, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
schedule = LambdaLR(optimizer, lambda step: min(1.0, step / 1000))
for batch, labels in loader:  # five updates: the factor is 0.005 by then, as the rate is
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch), labels).backward()
    optimizer.step()
    schedule.step()
