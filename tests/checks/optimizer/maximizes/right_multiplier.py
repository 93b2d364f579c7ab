import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model, multiplier = torch.nn.Linear(4, 1), torch.nn.Parameter(torch.zeros(()))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
dual = torch.optim.SGD([multiplier], lr=0.1, maximize=True)

for _ in range(10):
    inputs = torch.randn(16, 4)
    outputs = model(inputs)
    excess = outputs.square().mean() - 0.01
    optimizer.zero_grad()
    dual.zero_grad()
    (mse_loss(outputs, inputs[:, :1]) + multiplier * excess).backward()
    optimizer.step()
    dual.step()
