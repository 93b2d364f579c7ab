import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
weights = torch.randn(4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(8):
    inputs = torch.randn(16, 4)
    targets = inputs @ weights
    predictions = model(inputs)
    loss = mse_loss(predictions, targets)  # found
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
