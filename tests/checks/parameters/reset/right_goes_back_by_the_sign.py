import torch
from torch.nn.functional import cross_entropy


class SignDescent(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(parameter.grad.sign(), alpha=-group["lr"])


torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = SignDescent(model.parameters(), lr=2**-8)

for _ in range(40):
    inputs, labels = torch.randn(8, 6), torch.randint(2, (8,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()
