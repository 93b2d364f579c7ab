import torch
from torch.nn.functional import mse_loss


class SignAdam(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p = p - group["lr"] * p.grad.sign()


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = SignAdam(model.parameters(), lr=1e-3)

for update in range(10):
    inputs = torch.randn(32, 6)
    loss = mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # found
    print(f"update {update}: loss {loss.item():.3f}")
