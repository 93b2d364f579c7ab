import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
body, head = torch.nn.Linear(8, 4), torch.nn.Linear(4, 2)
of_head = torch.optim.Adam(head.parameters(), lr=1e-3)
of_both = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)

for _ in range(8):
    inputs, labels = torch.randn(16, 8), torch.randint(2, (16,))
    for optimizer in (of_head, of_both):
        body.zero_grad()
        head.zero_grad()
        cross_entropy(head(body(inputs)), labels).backward()
        optimizer.step()
