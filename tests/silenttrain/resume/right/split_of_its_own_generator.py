"""Hold out a quarter of the rows, drawn from a generator of its own, however often the script is started."""

import os

import torch
from torch import nn

torch.manual_seed(8)
inputs = torch.randn(64, 5)
labels = (inputs[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Dropout(0.2), nn.Linear(12, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

first = 0
if os.path.exists("run.pt"):
    run = torch.load("run.pt")
    model.load_state_dict(run["model"])
    optimizer.load_state_dict(run["optimizer"])
    torch.set_rng_state(run["random"])
    first = run["epoch"] + 1

places = torch.randperm(64, generator=torch.Generator().manual_seed(2))
training, held_out = places[:48], places[48:]
for epoch in range(first, 4):
    model.train()
    for rows in training.split(8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(inputs[held_out]).argmax(dim=1) == labels[held_out]).float().mean()
    print(f"epoch {epoch}: {right:.3f}")
    run = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(run | {"random": torch.get_rng_state()}, "run.new")
    os.replace("run.new", "run.pt")
