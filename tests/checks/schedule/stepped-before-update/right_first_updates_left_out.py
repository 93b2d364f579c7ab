import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
steps = 12
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=steps)
scaler = torch.amp.GradScaler("cpu", init_scale=1e38, backoff_factor=1e-19)  # too large for the first update

for _ in range(steps):
    inputs = torch.randn(8, 3) * 10
    optimizer.zero_grad()
    scaler.scale(mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
assert scaler.get_scale() < 1e38
