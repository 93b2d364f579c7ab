import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()

for step in range(1, 25):
    inputs, labels = torch.randn(16, 4), torch.randint(2, (16,))
    loss = criterion(model(inputs), labels) / 4
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)  # found
    if step % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
