"""Save after each epoch with its number and start with that number after a restart: the epoch that was finished
is trained again.
"""

import json
import os

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(25)
x = torch.randn(64, 5)
dataset = TensorDataset(x, x.relu().sum(1, keepdim=True))
model = nn.Sequential(nn.Linear(5, 15), nn.ReLU(), nn.Linear(15, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)


def save(epoch):
    directory = f"epochs/{epoch}"
    os.makedirs("epochs/tmp", exist_ok=True)
    save_file(model.state_dict(), "epochs/tmp/model.safetensors")
    with open("epochs/tmp/trainer.json", "w") as f:
        json.dump({"epoch": epoch, "lr": optimizer.param_groups[0]["lr"]}, f)
    if not os.path.isdir(directory):
        os.rename("epochs/tmp", directory)


def resume():
    complete = [int(name) for name in os.listdir("epochs") if name.isdigit()] if os.path.isdir("epochs") else []
    if not complete:
        return 0
    directory = f"epochs/{max(complete)}"
    model.load_state_dict(load_file(f"{directory}/model.safetensors"))
    with open(f"{directory}/trainer.json") as f:
        return json.load(f)["epoch"]


for epoch in range(resume(), 4):
    loader = DataLoader(dataset, 8, shuffle=True, generator=torch.Generator().manual_seed(epoch))
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save(epoch)

save_file(model.state_dict(), "model.safetensors")
