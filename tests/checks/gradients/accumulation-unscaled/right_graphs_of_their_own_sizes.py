import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(8):
    optimizer.zero_grad()
    for _ in range(4):
        nodes = torch.randn(int(torch.randint(3, 20, ())), 4)
        mse_loss(model(nodes), nodes.sum(dim=1, keepdim=True)).backward()
    optimizer.step()
