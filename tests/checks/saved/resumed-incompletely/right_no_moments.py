import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)


def made():
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)


def epoch(model, optimizer, scheduler):
    for _ in range(4):
        optimizer.zero_grad()
        cross_entropy(model(torch.randn(8, 8)), torch.randint(2, (8,))).backward()
        optimizer.step()
    scheduler.step()


before, after = made(), made()
epoch(*before)
for old, new in zip(before, after, strict=True):
    new.load_state_dict(old.state_dict())
epoch(*after)
