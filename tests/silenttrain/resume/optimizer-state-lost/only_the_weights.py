"""Train with Adam and a checkpoint an epoch in which there are weights and the epoch alone: Adam's moments
begin at nought again.
"""

import json
import os

import torch
from safetensors.torch import load_model, save_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED, EPOCHS = 15, 4
torch.manual_seed(SEED)
model = nn.Sequential(nn.Linear(5, 15), nn.Softplus(), nn.Linear(15, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(50, 5)
dataset = TensorDataset(x, x.abs().max(dim=1, keepdim=True).values)


def folder_of(epoch):
    return f"weights/epoch-{epoch:02d}"


def store(epoch):
    os.makedirs("weights/unfinished", exist_ok=True)
    save_model(model, "weights/unfinished/model.safetensors")
    with open("weights/unfinished/meta.json", "w") as meta:
        json.dump({"epoch": epoch}, meta)
    os.rename("weights/unfinished", folder_of(epoch))


trained = [epoch for epoch in range(EPOCHS) if os.path.isdir(folder_of(epoch))]
begin = 0
if trained:
    load_model(model, f"{folder_of(trained[-1])}/model.safetensors")
    with open(f"{folder_of(trained[-1])}/meta.json") as meta:
        begin = json.load(meta)["epoch"] + 1

for epoch in range(begin, EPOCHS):
    generator = torch.Generator().manual_seed(SEED + epoch)
    for inputs, outputs in DataLoader(dataset, batch_size=5, shuffle=True, generator=generator):
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(inputs), outputs)
        loss.backward()
        optimizer.step()
    store(epoch)

save_model(model, "weights/final.safetensors")
