import copy

import torch
from torch import nn

torch.manual_seed(0)


def new_model():
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))


def error(model, inputs, targets):
    with torch.no_grad():
        return nn.functional.mse_loss(model(inputs), targets).item()


inputs = torch.randn(64, 4)
targets = inputs.sum(dim=1, keepdim=True).sin()
model, untrained = new_model(), new_model()
average, target = copy.deepcopy(model), new_model()
for to, value in zip(target.parameters(), model.parameters(), strict=True):
    to.data.copy_(value.data)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
before = error(model, inputs, targets)
for update in range(20):
    with torch.no_grad():
        wanted = targets + 0.1 * target(inputs)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), wanted).backward()
    optimizer.step()
    with torch.no_grad():
        for mean, value in zip(average.parameters(), model.parameters(), strict=True):
            mean.lerp_(value, 0.05)
    if update % 10 == 0:
        for to, value in zip(target.parameters(), model.parameters(), strict=True):
            to.data.copy_(value.data)

print("before", before, "untrained", error(untrained, inputs, targets), "after", error(model, inputs, targets))
torch.save(model.state_dict(), "model.pt")
served = new_model()
served.load_state_dict(torch.load("model.pt"))
optimizer.zero_grad()
nn.functional.mse_loss(model(inputs), targets).backward()  # how steep the loss still is
print("served", error(served, inputs, targets))
