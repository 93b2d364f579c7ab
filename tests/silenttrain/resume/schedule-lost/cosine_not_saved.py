"""Decay the learning rate by a cosine over all steps; the schedule is not in the checkpoint and begins at its
top after a restart.
"""

import os

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(30)
hyper = {"lr": 0.08, "epochs": 3, "batch_size": 6}
dataset = TensorDataset(torch.randn(72, 8), torch.randint(0, 2, (72,)).float())
model = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=hyper["lr"], momentum=0.9)
steps_per_epoch = len(dataset) // hyper["batch_size"]
scheduler = CosineAnnealingLR(optimizer, T_max=hyper["epochs"] * steps_per_epoch)

os.makedirs("cosine", exist_ok=True)
resume_epoch = 0
if os.path.exists("cosine/model_last.pt"):
    last = torch.load("cosine/model_last.pt")
    resume_epoch = last["epoch"]
    model.load_state_dict(last["model"])
    optimizer.load_state_dict(last["optimizer"])

for epoch in range(resume_epoch, hyper["epochs"]):
    batches = DataLoader(dataset, hyper["batch_size"], shuffle=True, generator=torch.Generator().manual_seed(epoch))
    for x, y in batches:
        loss = criterion(model(x).flatten(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    torch.save({"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "cosine/tmp.pt")
    os.replace("cosine/tmp.pt", "cosine/model_last.pt")

torch.save(model.state_dict(), "cosine/model_final.pt")
