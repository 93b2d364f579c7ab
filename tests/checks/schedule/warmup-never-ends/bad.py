import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup

torch.manual_seed(0)
epochs, warmup = 3, 6
data = TensorDataset(torch.randn(240, 10), torch.randint(4, (240,)))
loader = DataLoader(data, batch_size=12, shuffle=True)
model = torch.nn.Linear(10, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = get_linear_schedule_with_warmup(optimizer, epochs * len(loader), warmup)  # found

for _ in range(epochs):
    for inputs, labels in loader:
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
