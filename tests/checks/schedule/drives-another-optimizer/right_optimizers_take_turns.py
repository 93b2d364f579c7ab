import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(8, 3)
coarse = torch.optim.SGD(model.parameters(), lr=0.1)
fine = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(coarse, 0.99)

for update in range(60):  # ten updates by the one, ten by the other; the schedule goes on with all of them
    inputs, labels = torch.randn(16, 8), torch.randint(3, (16,))
    optimizer = coarse if update // 10 % 2 == 0 else fine
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    schedule.step()
