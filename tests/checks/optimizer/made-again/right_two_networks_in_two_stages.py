import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)


def trained(model, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(4):
        optimizer.zero_grad()
        mse_loss(model(torch.randn(8, 4)), torch.randn(8, 2)).backward()
        optimizer.step()


one, other = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
trained(one, 1e-3)
trained(other, 1e-4)
trained(one, 1e-4)
