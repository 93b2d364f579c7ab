import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(20, 3)
group = {"params": model.parameters(), "weight_decay": 0.04, "weight_decay_end": 0.4}
optimizer = torch.optim.AdamW([group], lr=1e-3)

for i in range(10):
    inputs, labels = torch.randn(16, 20), torch.randint(3, (16,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    for group in optimizer.param_groups:
        group["weight_decay"] += (group["weight_decay_end"] - group["weight_decay"]) / (10 - i)
