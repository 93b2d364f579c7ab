import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
body, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
of_body = torch.optim.SGD(body.parameters(), lr=0.1)
of_head = torch.optim.SGD(head.parameters(), lr=0.1)
schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(each, T_max=60) for each in (of_body, of_head)]

for update in range(60):
    inputs, labels = torch.randn(16, 8), torch.randint(3, (16,))
    loss = cross_entropy(head(body(inputs).relu()), labels)
    of_body.zero_grad()
    of_head.zero_grad()
    loss.backward()
    if update < 30:  # the body is left as it is in the second half; its schedule goes on with the head's
        of_body.step()
    of_head.step()
    for schedule in schedules:
        schedule.step()
