import torch
from torch import nn

torch.manual_seed(0)


def tower():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


both = nn.ModuleDict({"text": nn.Sequential(*(nn.Linear(4, 4) for _ in range(5))), "image": tower()})
state = {name.removeprefix("image."): value for name, value in both.state_dict().items()}
model = tower()
model.load_state_dict(state, strict=False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    inputs = torch.randn(16, 4)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), (inputs[:, 0] > 0).long()).backward()
    optimizer.step()
