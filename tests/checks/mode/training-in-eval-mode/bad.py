import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs, labels = torch.randn(96, 4), torch.randint(2, (96,))
train_loader = DataLoader(TensorDataset(inputs[:64], labels[:64]), batch_size=16, shuffle=True)
eval_loader = DataLoader(TensorDataset(inputs[64:], labels[64:]), batch_size=16)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

model.train()
for epoch in range(2):
    for batch, targets in train_loader:
        nn.functional.cross_entropy(model(batch), targets).backward()  # found
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(batch).argmax(dim=-1) == targets).sum()) for batch, targets in eval_loader)
    print(f"epoch {epoch}: {right / 32:.0%} right")
