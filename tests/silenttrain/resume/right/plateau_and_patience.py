"""Early stopping and ReduceLROnPlateau on a validation loss; best score, patience and schedule are in the
checkpoint.
"""

import os

import torch
import torch.nn as nn

torch.manual_seed(8)
MAX_EPOCHS, PATIENCE = 9, 2

w = torch.randn(10, 1)
train_x, valid_x = torch.randn(40, 10), torch.randn(40, 10)
train_y = train_x @ w + 1.5 * torch.randn(40, 1)
valid_y = valid_x @ w + 1.5 * torch.randn(40, 1)

model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
best, bad_epochs, epoch = float("inf"), 0, 0


def atomically(obj, name):
    torch.save(obj, name + ".tmp")
    os.replace(name + ".tmp", name)


if os.path.exists("last.pt"):
    last = torch.load("last.pt", weights_only=False)
    model.load_state_dict(last["model"])
    optimizer.load_state_dict(last["optimizer"])
    scheduler.load_state_dict(last["scheduler"])
    best, bad_epochs, epoch = last["best"], last["bad_epochs"], last["epoch"]

while epoch < MAX_EPOCHS and bad_epochs < PATIENCE:
    model.train()
    permutation = torch.randperm(len(train_x), generator=torch.Generator().manual_seed(epoch))
    for rows in permutation.split(8):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(train_x[rows]), train_y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        score = nn.functional.mse_loss(model(valid_x), valid_y).item()
    scheduler.step(score)
    epoch += 1
    if score < best:
        best, bad_epochs = score, 0
        atomically(model.state_dict(), "best.pt")
    else:
        bad_epochs += 1
    print(f"epoch {epoch}: validation {score:.4f}, best {best:.4f}")
    atomically(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "best": best,
            "bad_epochs": bad_epochs,
            "epoch": epoch,
        },
        "last.pt",
    )

model.load_state_dict(torch.load("best.pt"))
torch.save(model.state_dict(), "result.pt")
