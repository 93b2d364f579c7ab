import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(400, 8)
labels = (rows[:, 0] > 0).long()
loader = DataLoader(
    TensorDataset(rows, labels), batch_size=40, generator=torch.Generator().manual_seed(1), shuffle=True
)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def stability():
    torch.manual_seed(7)  # found
    with torch.no_grad():
        noisy = model(rows[:50] + 0.1 * torch.randn(50, 8))
    return noisy.std(0).mean().item()


for epoch in range(5):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    print(f"epoch {epoch}: spread {stability():.4f}")
