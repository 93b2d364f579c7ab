import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
rows = torch.randn(200, 6)
worth = rows.sum(1)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(20):
    loss = mse_loss(model(rows).squeeze(1), worth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    scores = model(rows)
    apart = scores - scores.squeeze(1)  # of each pair of rows
    right = (apart.sign() == (worth.unsqueeze(1) - worth).sign()).float().mean()
print(f"pairs in the right order: {right:.3f}")
