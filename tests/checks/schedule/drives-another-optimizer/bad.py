import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import OneCycleLR

torch.manual_seed(0)
steps = 20
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = OneCycleLR(optimizer, max_lr=0.05, total_steps=steps)  # found

decayed = [p for p in model.parameters() if p.dim() > 1]
exempt = [p for p in model.parameters() if p.dim() == 1]
groups = [{"params": decayed, "weight_decay": 0.01}, {"params": exempt, "weight_decay": 0.0}]
optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)

for _ in range(steps):
    inputs, labels = torch.randn(32, 8), torch.randint(2, (32,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    scheduler.step()
