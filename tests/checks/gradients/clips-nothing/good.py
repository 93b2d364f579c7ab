import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
parameters = list(model.parameters())
print("parameters:", sum(parameter.numel() for parameter in parameters))
for _ in range(8):
    inputs, labels = torch.randn(16, 4), torch.randint(2, (16,))
    optimizer.zero_grad()
    loss = criterion(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, max_norm=1.0)
    optimizer.step()
