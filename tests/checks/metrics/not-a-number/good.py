import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows, tags = torch.randn(80, 4), torch.randint(3, (80,))
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for row, tag in DataLoader(TensorDataset(rows[:64], tags[:64]), batch_size=16, shuffle=True):
    loss = nn.functional.cross_entropy(model(row), tag)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
losses = []
with torch.no_grad():
    for row, tag in DataLoader(TensorDataset(rows[64:], tags[64:]), batch_size=8):
        losses.append(nn.functional.cross_entropy(model(row), tag).item())
print(f"validation loss {sum(losses) / len(losses):.4f}")
