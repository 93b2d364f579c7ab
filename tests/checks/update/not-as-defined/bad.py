import torch
from torch.nn.functional import cross_entropy


class DecayingAdamW(torch.optim.AdamW):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad.add_(parameter, alpha=group["weight_decay"])
        return super().step(closure)


torch.manual_seed(0)
model = torch.nn.Linear(20, 3)
optimizer = DecayingAdamW(model.parameters(), lr=1e-2, weight_decay=0.1)

for _ in range(10):
    inputs, labels = torch.randn(16, 20), torch.randint(3, (16,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()  # found
