import torch
from torch import nn
from torch.nn.functional import cross_entropy

DIGITS, PLACES = 6, 4

torch.manual_seed(0)
at_once = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, DIGITS * PLACES), nn.Unflatten(1, (PLACES, DIGITS)))
of_pictures = nn.Conv2d(3, DIGITS, 3, padding=1)
single = nn.Linear(12, DIGITS)
in_pieces = nn.Linear(12, DIGITS * PLACES)
modules = nn.ModuleList([at_once, of_pictures, single, in_pieces])
optimizer = torch.optim.Adam(modules.parameters(), lr=1e-2)


def one_after_another(numbers):
    return torch.cat([in_pieces(each) for each in numbers])


for _ in range(12):
    numbers = torch.randn(16, 12)
    losses = [
        cross_entropy(at_once(numbers).view(16, DIGITS, PLACES), torch.randint(DIGITS, (16, PLACES))),
        cross_entropy(at_once(numbers).relu().view(16, DIGITS, PLACES), torch.randint(DIGITS, (16, PLACES))),
        cross_entropy(one_after_another(numbers).view(16, DIGITS, PLACES), torch.randint(DIGITS, (16, PLACES))),
        cross_entropy(of_pictures(torch.randn(4, 3, 5, 6)).view(4, DIGITS, 30), torch.randint(DIGITS, (4, 30))),
        cross_entropy(of_pictures(torch.randn(4, 3, 5, 6)).flatten(2), torch.randint(DIGITS, (4, 30))),
        cross_entropy(single(numbers).unsqueeze(1).view(16, DIGITS, 1), torch.randint(DIGITS, (16, 1))),
        cross_entropy(at_once(numbers).movedim(-1, 1).reshape(16, DIGITS, 2, 2), torch.randint(DIGITS, (16, 2, 2))),
    ]
    optimizer.zero_grad()
    torch.stack(losses).sum().backward()
    optimizer.step()
