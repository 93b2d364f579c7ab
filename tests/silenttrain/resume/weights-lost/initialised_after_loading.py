"""Resume an autoencoder's training; its own initialisation runs after the checkpoint was loaded and writes over
the weights.
"""

import pathlib

import torch
from torch import nn


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(9, 3)
        self.up = nn.Linear(3, 9)

    def forward(self, x):
        return self.up(self.down(x).sigmoid())


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight, generator=torch.Generator().manual_seed(77))
        nn.init.zeros_(module.bias)


def setup(folder):
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    step = 0
    if (folder / "state.pt").is_file():
        state = torch.load(folder / "state.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    model.apply(init_weights)
    return model, optimizer, step


folder = pathlib.Path("ae")
folder.mkdir(exist_ok=True)
data = torch.rand(50, 9, generator=torch.Generator().manual_seed(0))
model, optimizer, step = setup(folder)

while step < 40:
    epoch, part = divmod(step, 10)
    rows = torch.randperm(50, generator=torch.Generator().manual_seed(epoch))[5 * part : 5 * part + 5]
    loss = (model(data[rows]) - data[rows]).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 7 == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, folder / "state.pt.new")
        (folder / "state.pt.new").replace(folder / "state.pt")

torch.save(model.state_dict(), folder / "model.pt")
