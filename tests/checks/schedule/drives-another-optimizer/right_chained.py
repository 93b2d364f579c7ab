import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import ExponentialLR, LinearLR

torch.manual_seed(0)
body, head = torch.nn.Linear(6, 8), torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam(body.parameters(), lr=1e-2)
constant = torch.optim.SGD(head.parameters(), lr=0.1)
warmup, decay = LinearLR(optimizer, 0.1, 1.0, 5), ExponentialLR(optimizer, 0.95)

for _ in range(12):
    inputs, labels = torch.randn(16, 6), torch.randint(2, (16,))
    optimizer.zero_grad()
    constant.zero_grad()
    cross_entropy(head(torch.relu(body(inputs))), labels).backward()
    optimizer.step()
    constant.step()
    warmup.step()
    decay.step()
