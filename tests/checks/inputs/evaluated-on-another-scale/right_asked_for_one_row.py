# A prediction for one row that lies far outside of what the model was trained on, compared with what it should be.
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(50):
    inputs = torch.rand(32, 2)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), inputs @ torch.tensor([[2.0], [-1.0]])).backward()
    optimizer.step()
with torch.no_grad():
    answer = model(torch.tensor([[300.0, 100.0]]))
    print(answer.item(), nn.functional.l1_loss(answer, torch.tensor([[500.0]])).item())
