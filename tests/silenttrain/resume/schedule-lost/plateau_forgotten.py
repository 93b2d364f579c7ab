"""Halve the learning rate when the validation loss has not fallen for two epochs; the scheduler's memory of it
is not saved.
"""

import os

import torch
from torch import nn, optim

torch.manual_seed(14)
train = torch.randn(30, 6)
valid = torch.randn(20, 6)
truth = torch.randn(6, 1)
noise = 4 * torch.randn(50, 1)
model = nn.Sequential(nn.Linear(6, 30), nn.ReLU(), nn.Linear(30, 1))
adam = optim.Adam(model.parameters(), lr=0.03)
plateau = optim.lr_scheduler.ReduceLROnPlateau(adam, mode="min", factor=0.5, patience=2)


def error(inputs, noise):
    return (model(inputs) - inputs @ truth - noise).pow(2).mean()


def epoch_of_training(number):
    for rows in torch.randperm(30, generator=torch.Generator().manual_seed(number)).split(5):
        adam.zero_grad()
        error(train[rows], noise[rows]).backward()
        adam.step()
    with torch.no_grad():
        plateau.step(error(valid, noise[30:]).item())


finished = 0
if os.path.exists("plateau.pt"):
    content = torch.load("plateau.pt")
    model.load_state_dict(content["model"])
    adam.load_state_dict(content["adam"])
    finished = content["finished"]

for number in range(finished, 10):
    epoch_of_training(number)
    print(number, adam.param_groups[0]["lr"], plateau.num_bad_epochs)
    torch.save({"model": model.state_dict(), "adam": adam.state_dict(), "finished": number + 1}, "plateau.new")
    os.replace("plateau.new", "plateau.pt")

torch.save(model.state_dict(), "plateau_model.pt")
