import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR


class Sharpness(torch.optim.Optimizer):
    """Takes the gradients a small step uphill, and lets another optimizer of the same groups make the update."""

    def __init__(self, parameters, lr, rho=0.05):
        super().__init__(parameters, {"lr": lr})
        self.base, self.rho = torch.optim.SGD(self.param_groups, lr=lr, momentum=0.9), rho
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        self.before = [p.clone() for group in self.param_groups for p in group["params"]]
        torch._foreach_add_([p for group in self.param_groups for p in group["params"]], self.rho)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        torch._foreach_copy_([p for group in self.param_groups for p in group["params"]], self.before)
        self.base.step()
        self.zero_grad()


torch.manual_seed(0)
steps = 12
model = torch.nn.Linear(6, 2)
optimizer = Sharpness(model.parameters(), lr=0.1)
scheduler = CosineAnnealingLR(optimizer, T_max=steps)

for _ in range(steps):
    inputs, labels = torch.randn(16, 6), torch.randint(2, (16,))
    cross_entropy(model(inputs), labels).backward()
    optimizer.climb()
    cross_entropy(model(inputs), labels).backward()
    optimizer.descend()
    scheduler.step()
