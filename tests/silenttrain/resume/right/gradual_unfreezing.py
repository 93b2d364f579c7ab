"""Train the head alone in the first epoch and the body too from the second on, after a restart as before it."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.body(x))


def set_trainable(model, epoch):
    for parameter in model.body.parameters():
        parameter.requires_grad = epoch >= 1


def evaluate(model, loader):
    model.eval()
    with torch.inference_mode():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return hits


torch.manual_seed(31)
x, y = torch.randn(70, 10), torch.randint(0, 2, (70,))
train, valid = TensorDataset(x[:60], y[:60]), TensorDataset(x[60:], y[60:])
model = Classifier()
optimizer = torch.optim.SGD(
    [{"params": model.body.parameters(), "lr": 0.01}, {"params": model.head.parameters(), "lr": 0.1}], momentum=0.5
)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.3)
shuffler = torch.Generator().manual_seed(6)
history = []

if os.path.exists("unfreeze/state.pt"):
    state = torch.load("unfreeze/state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    shuffler.set_state(state["shuffler"])
    history = state["history"]
os.makedirs("unfreeze", exist_ok=True)

for epoch in range(len(history), 4):
    set_trainable(model, epoch)
    for inputs, labels in DataLoader(train, batch_size=6, shuffle=True, generator=shuffler):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    history.append(evaluate(model, DataLoader(valid, batch_size=5)))
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "shuffler": shuffler.get_state(),
        "history": history,
    }
    torch.save(state, "unfreeze/state.pt.0")
    os.replace("unfreeze/state.pt.0", "unfreeze/state.pt")

torch.save(model.state_dict(), "unfreeze/final.pt")
