"""Replace the weights' file and the file of the progress one after the other: a kill in between pairs new
weights with an old step.
"""

import json
import os

import torch
from safetensors.torch import load_file, save_file
from torch import nn

FOLDER = "parts"
WEIGHTS, PROGRESS = f"{FOLDER}/weights.safetensors", f"{FOLDER}/progress.json"


def replace(path, write):
    write(path + ".tmp")
    os.replace(path + ".tmp", path)


def write_progress(step):
    def write(path):
        with open(path, "w") as file:
            json.dump({"step": step, "message": f"{step} updates were made"}, file)

    return write


torch.manual_seed(83)
x = torch.rand(64, 6)
y = (x * torch.arange(6)).sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.003)
os.makedirs(FOLDER, exist_ok=True)

first = 0
if os.path.exists(PROGRESS):
    model.load_state_dict(load_file(WEIGHTS))
    with open(PROGRESS) as file:
        first = json.load(file)["step"]

for step in range(first, 32):
    order = torch.randperm(64, generator=torch.Generator().manual_seed(step // 8))
    rows = order[step % 8 * 8 : step % 8 * 8 + 8]
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 5 == 0:
        replace(WEIGHTS, lambda path: save_file(model.state_dict(), path))
        replace(PROGRESS, write_progress(step + 1))

save_file(model.state_dict(), f"{FOLDER}/final.safetensors")
