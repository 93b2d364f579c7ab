"""Train in float16 under autocast with loss scaling; the scaler is not saved, and its first, too large scale
costs updates again.
"""

import os

import torch
from torch import nn

torch.manual_seed(2)
BATCH, EPOCHS = 8, 4
inputs = torch.randn(88, 10)
labels = inputs[:, :3].argmax(dim=1)
classifier = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))
optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=6)


def train_epoch(epoch):
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(epoch + 1))
    for batch in order.split(BATCH):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(classifier(inputs[batch]), labels[batch])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(classifier.parameters(), 2.0)
        scaler.step(optimizer)
        scaler.update()


def save(epoch):
    torch.save(
        {"classifier": classifier.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
        "fp16/state.tmp",
    )
    os.replace("fp16/state.tmp", "fp16/state.pt")


epoch = 0
if os.path.exists("fp16/state.pt"):
    state = torch.load("fp16/state.pt")
    classifier.load_state_dict(state["classifier"])
    optimizer.load_state_dict(state["optimizer"])
    epoch = state["epoch"]
os.makedirs("fp16", exist_ok=True)
while epoch < EPOCHS:
    train_epoch(epoch)
    epoch += 1
    save(epoch)
torch.save(classifier.state_dict(), "fp16/classifier.pt")
