import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")

for _ in range(8):
    rows = torch.randn(20, 5)
    optimizer.zero_grad()
    scaler.scale(mse_loss(model(rows), rows[:, :1])).backward()
    scaler.step(optimizer)
    scaler.update()
